"""Compares an event file with the numbers that were recorded, as TensorBoard's own reader finds them.

    python check.py FOLDER WANTED.json
"""

import glob
import json
import sys

import numpy
from tensorboard.backend.event_processing import event_accumulator, event_file_loader

folder, wanted_path = sys.argv[1:]
with open(wanted_path, encoding="utf-8") as file:
    wanted = json.load(file)

everything = {event_accumulator.SCALARS: 0, event_accumulator.HISTOGRAMS: 0, event_accumulator.TENSORS: 0}
accumulator = event_accumulator.EventAccumulator(folder, size_guidance=everything)
accumulator.Reload()
assert accumulator.file_version == 2.0, accumulator.file_version

scalars = 0
for tag in wanted[0]["scalars"]:
    found = accumulator.Scalars(tag)
    assert [event.step for event in found] == [line["step"] for line in wanted], tag
    for event, line in zip(found, wanted):
        assert event.value == float(numpy.float32(line["scalars"][tag])), (tag, event, line)
        scalars += 1

drawn = [line for line in wanted if line["values"]]
found = accumulator.Histograms("H")
assert [event.step for event in found] == [line["step"] for line in drawn]
for event, line in zip(found, drawn):
    values, histogram = numpy.array(line["values"]), event.histogram_value
    assert (histogram.min, histogram.max, histogram.num) == (values.min(), values.max(), values.size), line["step"]
    assert numpy.isclose(histogram.sum, values.sum(), rtol=1e-12), line["step"]
    assert numpy.isclose(histogram.sum_squares, (values**2).sum(), rtol=1e-12), line["step"]
    assert sum(histogram.bucket) == values.size and len(histogram.bucket) == 20, line["step"]
    below = [(values <= limit).sum() for limit in histogram.bucket_limit]
    # a value on an edge belongs to the bucket on its right
    assert numpy.abs(numpy.cumsum(histogram.bucket) - below).max() <= values.size / 10, line["step"]

# the loader of the web page turns both kinds into tensors; it must accept every record

(path,) = glob.glob(f"{folder}/events.out.tfevents.*.run.1")
kinds = {}
for event in event_file_loader.EventFileLoader(path).Load():
    for value in event.summary.value:
        kind = value.metadata.plugin_data.plugin_name
        kinds[kind] = kinds.get(kind, 0) + 1
assert kinds == {"scalars": scalars, "histograms": len(drawn)}, kinds

print(f"{len(wanted)} steps, {scalars} scalars, {len(drawn)} histograms")
