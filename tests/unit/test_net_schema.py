"""The reader of caffe.proto files."""

from __future__ import annotations

import pytest

from caffeup.net.schema import read_proto, registered_types

PROTO = """
syntax = "proto2"; // a comment with message X {
package caffe;
import "other.proto";
option java_package = "x";
message Net {
  optional string name = 1 [default = "a; b"];
  repeated Layer layer = 100; /* message Y { */
  enum Kind { option allow_alias = true; A = 0; B = -1; C = 0x10 [deprecated = true]; }
  optional Kind kind = 2 [deprecated = true, default = B];
  repeated float size = 3 [packed = true];
  reserved 4, 6 to 8;
  extensions 1000 to max;
  message Inner { required .caffe.Layer up = 1; optional Kind kind = 2; }
  oneof one { int32 x = 11; Inner y = 12; }
  optional double negative = 13 [default = -1.5e-3];
}
message Layer { optional Net.Kind kind = 1; optional Nowhere gone = 2; }
enum Top { T = 0; }
extend Net { optional int32 more = 1000; }
service S { rpc Do (Net) returns (Layer) { option x = 1; } }
"""


def test_messages_fields_defaults_and_enums_are_read() -> None:
    schema = read_proto(PROTO)
    assert set(schema.messages) == {"Net", "Net.Inner", "Layer"}
    assert schema.enums == {"Net.Kind": {"A": 0, "B": -1, "C": 16}, "Top": {"T": 0}}
    net = schema.messages["Net"]
    assert list(net) == ["name", "layer", "kind", "size", "x", "y", "negative"]
    assert (net["name"].default, net["kind"].default, net["negative"].default) == ("a; b", "B", "-1.5e-3")
    assert net["layer"].repeated
    assert net["layer"].number == 100
    assert schema.messages["Net.Inner"]["up"].required


def test_types_are_looked_for_from_the_inside_out() -> None:
    messages = read_proto(PROTO).messages
    assert messages["Net"]["kind"].type == "Net.Kind"
    assert messages["Net.Inner"]["kind"].type == "Net.Kind"
    assert messages["Net.Inner"]["up"].type == "Layer"
    assert messages["Net"]["y"].type == "Net.Inner"
    assert messages["Layer"]["gone"].type == "Nowhere"


@pytest.mark.parametrize("text", ["message A {", "}", "message A { optional int32 x 1; }", "message A { optional int32"])
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_proto(text)


def test_registered_types_are_those_of_the_macros() -> None:
    sources = [
        "INSTANTIATE_CLASS(ReLULayer);\nREGISTER_LAYER_CLASS(ReLU);",
        "  REGISTER_LAYER_CREATOR( Convolution, GetConvolutionLayer);\n// REGISTER_LAYER_CLASS(Gone);",
        "#define REGISTER_LAYER_CLASS(type) \\\n  REGISTER_LAYER_CREATOR(type, Creator_##type##Layer)",
    ]
    assert registered_types(iter(sources)) == {"ReLU", "Convolution"}
