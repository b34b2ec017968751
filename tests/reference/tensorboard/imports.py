"""Compares an event file with the numbers that were recorded, as trackio imports them into a project on this machine.

    python imports.py FOLDER WANTED.json
"""

import json
import math
import os
import sys
import tempfile

folder, wanted_path = sys.argv[1:]
with open(wanted_path, encoding="utf-8") as file:
    wanted = json.load(file)

scratch = tempfile.TemporaryDirectory()
os.environ["TRACKIO_DIR"] = os.path.join(scratch.name, "trackio")

import trackio  # noqa: E402
from trackio.sqlite_storage import SQLiteStorage  # noqa: E402

trackio.import_tf_events(folder, project="events")
(run,) = SQLiteStorage.get_runs("events")
steps = {}
for row in SQLiteStorage.get_logs("events", run):
    steps.setdefault(row["step"], {}).update(row)
assert sorted(steps) == [line["step"] for line in wanted], len(steps)
scalars = 0
for line in wanted:
    for tag, value in line["scalars"].items():
        # event files hold scalars as f32
        assert math.isclose(steps[line["step"]][tag], value, rel_tol=1e-6), (line["step"], tag)
        scalars += 1
print(f"trackio: {len(steps)} steps, {scalars} scalars")
