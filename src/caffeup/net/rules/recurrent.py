"""Layers that go through time steps."""

from __future__ import annotations

from caffeup.net.rules.base import Case, Out, Shape, Wrong, count, text


def lstm(case: Case) -> Out:
    """Long short-term memory."""
    return _recurrent(case, hidden=2)


def rnn(case: Case) -> Out:
    """A plain recurrent layer."""
    return _recurrent(case, hidden=1)


def _recurrent(case: Case, *, hidden: int) -> Out:
    case.need(2)
    block = case.layer.block.block("recurrent_param")
    many, exposed = block.integer("num_output"), hidden if block.flag("expose_hidden") else 0
    if many <= 0:
        raise Wrong("num_output must be positive", "recurrent_param")
    if len(case.first) < 2 or case.bottoms[1] != case.first[:2]:
        raise Wrong(
            f"its bottoms are steps x streams x … and steps x streams, not {text(case.first)} and {text(case.bottoms[1])}",
            "bottom",
        )
    if exposed and len(case.layer.tops) != 1 + exposed:
        raise Wrong(f"with expose_hidden it has {1 + exposed} tops", "top")
    steps, streams = case.first[:2]
    fixed = count(case.bottoms[2][1:]) if len(case.bottoms) > 2 + exposed else 0
    params = _params(count(case.first[2:]), fixed, many, lstm=hidden == 2)
    return Out(tops=((steps, streams, many), *[(1, streams, many)] * exposed), params=params)


def _params(inputs: int, fixed: int, many: int, *, lstm: bool) -> tuple[Shape, ...]:
    """Weights in the order in which the unrolled net makes them."""
    rows = 4 * many if lstm else many
    fixed_weights = ((rows, fixed),) if fixed else ()
    out = () if lstm else ((many, many), (many,))
    return ((rows, inputs), (rows,), *fixed_weights, (rows, many), *out)


def lstm_unit(case: Case) -> Out:
    """One step of an LSTM: cell and hidden state."""
    case.need(3, 3)
    cell, gates, going_on = case.bottoms
    if len(cell) != 3 or len(gates) != 3 or gates[2] != 4 * cell[2] or len(going_on) != 2:
        raise Wrong(f"its bottoms do not fit: {text(cell)}, {text(gates)} and {text(going_on)}", "bottom")
    return Out(tops=(cell, cell))
