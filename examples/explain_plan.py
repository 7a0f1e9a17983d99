# ruff: noqa: INP001, T201
"""What is here, what would be built for it, and why: `python explain_plan.py TREE [LOG]`."""

import sys

import caffeup

try:
    machine = caffeup.api.detect()
    print(machine.system.distro, machine.system.distro_version, [gpu.name for gpu in machine.graphics.gpus])
    plan = caffeup.api.plan(sys.argv[1])
    for decision in plan.decisions:
        print(f"{decision.key}: {decision.value}, because {decision.because}")
    for finding in (*plan.conflicts, *(one for log in sys.argv[2:] for one in caffeup.api.diagnose(log))):
        story = caffeup.api.explain(finding.id)
        print(f"{finding.severity}: {finding.title}\n  {story.why}")
        for remedy in finding.remedies:
            print(f"  mend: {remedy.text}", *remedy.commands, sep="\n    ")
except caffeup.errors.CaffeupError as error:
    sys.exit(f"{error.brief} {error.advice}")
