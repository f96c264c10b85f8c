"""
Sensors: looking back, and alarms that persist
==============================================

A single row of sensor values shows where a plant is, not how it got there. Columns computed over
the last rows reveal an oscillation or a frozen sensor. If an alarm has to persist, noise does not
raise it.
"""

import numpy as np
from matplotlib import pyplot as plt

from eqsep import Detector
from eqsep.datasets import make_process
from eqsep.detector import PersistentAlarms
from eqsep.evaluation import detection_delay
from eqsep.plots import ANOMALY_COLOUR, NORMAL_COLOUR

settings = {"n_rows": 60, "setpoint_spread": 0.02, "as_frame": True}
old = make_process(n_normal_runs=60, n_fault_runs=0, random_state=0, **settings)
new = make_process(n_normal_runs=20, n_fault_runs=2, random_state=1, **settings)
runs, new_runs = (made.X.assign(run=made.groups) for made in (old, new))

# %%
# Rows alone, and windows
# -----------------------
#
# Both detectors are fitted to normal runs, and their thresholds are set with whole runs. For each
# sensor, the second one also sees the mean, deviation and slope of the last 10 rows, and the change
# from the row before.

parameters = {"false_alarm_rate": 0.1, "n_landmarks": 300, "bandwidth": 1.0, "random_state": 0}
detectors = {
    "rows alone": Detector(**parameters).fit(runs, groups="run"),
    "windows of 10 rows": Detector(window=10, **parameters).fit(runs, groups="run"),
}

# %%
# In the last run a controller starts to oscillate at row 15. From row 33 on, no single row is
# strange, but the movement of the valve is.

run = new.groups == new.groups.max()
figure, axes = plt.subplots(3, 1, figsize=(7, 6), sharex=True, layout="constrained")
axes[0].plot(new.X["medium_valve"][run].to_numpy(), color="#444444")
axes[0].set_title("opening of the medium's valve", loc="left")
for ax, (name, detector) in zip(axes[1:], detectors.items(), strict=True):
    score = detector.score_samples(new_runs[run])
    above = score > detector.threshold_
    ax.bar(np.arange(60), score, color=np.where(above, ANOMALY_COLOUR, NORMAL_COLOUR), width=0.8)
    ax.axhline(detector.threshold_, color="#444444", linewidth=0.8)
    ax.set_title(f"score, {name}", loc="left")
for ax in axes:
    ax.axvspan(14.5, 59.5, color="#F3EDE6", zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
axes[-1].set_xlabel("row of the run; the fault is shaded")

# %%
# The explanation names what the windows show.

print(detectors["windows of 10 rows"].explain(new_runs[run], top=3)[-1])

# %%
# Alarms that persist
# -------------------
#
# You can require an alarm to persist, for example with 3 of the last 5 rows of a run above the
# threshold. The new rows have two faults of each kind, each in a separate run. How many faults are
# found, after how many rows, and how many stretches of false alarms are there?

delays = {}
for name, detector in detectors.items():
    above = detector.predict(new_runs)
    for rule in ((1, 1), (3, 5)):
        alarm = PersistentAlarms(*rule).update(above, groups=new.groups)
        delay = detection_delay(alarm, new.kind, time=new.time, groups=new.groups)
        delays[name, rule] = delay
        overall = delay.kinds[-1]
        print(
            f"{name:20} {rule[0]} of {rule[1]}: {overall.found.count} of {overall.found.total} "
            f"faults after {np.median(overall.rows):.1f} rows, "
            f"{delay.false_episodes} stretches of false alarms"
        )

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
kinds = [one.kind for one in delays["rows alone", (3, 5)].kinds[:-1]]
colours = dict(zip(detectors, (NORMAL_COLOUR, ANOMALY_COLOUR), strict=True))
for shift, (name, colour) in zip((-0.2, 0.2), colours.items(), strict=True):
    for place, one in enumerate(delays[name, (3, 5)].kinds[:-1]):
        missed = one.found.total - one.found.count
        ax.plot([*one.rows, *[48] * missed], [place + shift] * one.found.total, "o", color=colour)
    ax.plot([], [], "o", color=colour, label=name)
ax.axvline(45, color="grey", linewidth=0.8)
ax.set(yticks=range(len(kinds)), yticklabels=kinds, xlabel="rows until the first alarm")
ax.set_xticks([0, 10, 20, 30, 40, 48], ["0", "10", "20", "30", "40", "not found"])
ax.set_title("delay of each fault, alarms that persist (3 of 5)")
ax.legend(fontsize="small", loc="center right")
ax.spines[["top", "right"]].set_visible(False)
