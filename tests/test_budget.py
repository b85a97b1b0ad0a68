"""What one proxied call may cost, in Python calls: the same number on every machine."""

import collections
import json

from call_trace import CALLS, record

BUDGET = 200
"""Function activations in the gateway for one `tools/call`, stdio to stdio, with all guards."""
OURS = 100
"""Of those, the functions of plait itself."""


def test_a_proxied_call_stays_within_its_budget() -> None:
    seen, answer = record(CALLS)
    assert json.loads(answer)["result"] == {"content": [{"type": "text", "text": '{"a": 1}'}]}
    counted = collections.Counter(
        f"{code.co_filename.split('/plait/')[-1]} {code.co_qualname}" for code in seen
    )
    report = "\n".join(f"{count / CALLS:6.2f} {name}" for name, count in counted.most_common(60))
    assert len(seen) / CALLS <= BUDGET, report
    ours = [code for code in seen if "/plait/" in code.co_filename and "/tests/" not in code.co_filename]
    assert len(ours) / CALLS <= OURS, report
