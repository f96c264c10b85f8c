"""What an ensemble costs: members as an axis against a loop, against plain torch, against peers.

    python bench/networks.py                     all parts, on the CPU
    python bench/networks.py axis published      some of them
    python bench/networks.py thousand --device cuda

Every ratio is taken within one run. NSL-KDD is looked for in $EQSEP_DATA, then in ../shared/data;
DeepOD (pip install --no-deps deepod) is measured where it is installed.
"""

import argparse
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler
from torch import nn

from eqsep import DeepSAD, NetworkSeparator
from eqsep.datasets import load_nsl_kdd, make_hyperplane
from eqsep.networks import Bump, Training, trainer
from eqsep.networks.steps import Steps
from eqsep.separators.network import NarrowLayerWarning

SHARED = Path(__file__).parents[2] / "shared" / "data"


def seconds(run, *, device="cpu"):
    """The time of one call, once the device has nothing left to do."""
    begin = perf_counter()
    result = run()
    if device == "cuda":
        torch.cuda.synchronize()
    return perf_counter() - begin, result


def nsl_kdd():
    """The paper's training and test rows, standardised."""
    home = os.environ.get("EQSEP_DATA", SHARED)
    split = load_nsl_kdd(data_home=home, protocol="paper")
    scaler = StandardScaler().fit(split.X_train)
    return split, scaler.transform(split.X_train), scaler.transform(split.X_test)


def axis(device):
    """Twenty members as one, twenty in a loop, and one alone: the same rows, epochs and batches.

    The starts are as many, but others: in the loop each network has a seed of its own.
    """
    split = make_hyperplane(n_features=20, n_samples=4000, random_state=0)
    plan = Training(epochs=5, batch_size=32, validation_fraction=0)
    members = {"n_members": 20, "training": plan, "device": device, "random_state": 0}

    def fit(n_members, random_state):
        return NetworkSeparator(
            **members | {"n_members": n_members, "random_state": random_state}
        ).fit(split.X_train, split.y_train)

    fit(1, 0)  # warms up the libraries
    together, _ = seconds(lambda: fit(20, 0), device=device)
    alone, _ = seconds(lambda: fit(1, 0), device=device)
    loop, _ = seconds(lambda: [fit(1, i) for i in range(20)], device=device)
    print("\n20 members, 4,000 rows, 20 columns, hidden 60, batch 32, 5 epochs")
    print(f"  as one          {together:8.2f} s")
    print(f"  one alone       {alone:8.2f} s   as one costs {together / alone:.1f} times that")
    print(f"  20 in a loop    {loop:8.2f} s   as one is {loop / together:.1f} times faster")


def steps(device):
    """The same fit by steps in NumPy and by torch's batched steps, on a small table."""
    split = make_hyperplane(n_features=20, n_samples=2000, random_state=0)
    plan = Training(epochs=10, validation_fraction=0)
    chosen = trainer.steps_for

    def fit(n_members):
        model = NetworkSeparator(n_members=n_members, training=plan, device=device, random_state=0)
        return model.fit(split.X_train, split.y_train)

    def best(n_members, by):
        trainer.steps_for = by
        times = [seconds(lambda: fit(n_members), device=device)[0] for _ in range(4)]
        trainer.steps_for = chosen
        return min(times[1:])  # the first warms up the libraries

    print("\n2,000 rows, 20 columns, hidden 60, batch 32, 10 epochs")
    for k in (1, 5, 10, 20):
        ours, by_torch = best(k, chosen), best(k, Steps)
        print(
            f"  {k:2d} members   NumPy {ours:6.2f} s   torch {by_torch:6.2f} s"
            f"   {by_torch / ours:.1f} times as long"
        )


def published(device):
    """Processor time of torch's batched steps and of NumPy's on the paper's networks.

    The rows are random, of the paper's widths: what a step costs does not depend on them.
    """
    normed = {"sigma": 0.5, "batch_norm": True, "random_state": 0, "device": device}
    network = normed | {"closed": False, "standardize": False}
    few = Training(epochs=2, batch_size=32, validation_fraction=0)
    many = Training(epochs=20, batch_size=32, validation_fraction=0)
    chosen, rng = trainer.steps_for, np.random.default_rng(0)

    def models(head, activation):
        kind = network | {"head": head, "activation": activation}
        sad = normed | {"activation": activation, "linear_code": True, "n_members": 3}
        yield "NSL-KDD", 121, 3200, NetworkSeparator(**kind, n_members=5, training=few)
        yield "NSL-KDD, deep SAD", 121, 1600, DeepSAD(**sad, training=few, pretraining=few)
        wide = kind | {"hidden": (200,), "sigma": 7.0}
        yield "thyroid", 21, 3200, NetworkSeparator(**wide, n_members=3, training=few)
        small = kind | {"hidden": (5, 5), "batch_norm": False}
        yield "circles", 2, 300, NetworkSeparator(**small, n_members=20, training=many)

    def spent(model, X, y, by):
        trainer.steps_for = by
        times = []
        for _ in range(4):
            begin = process_time()
            model.fit(X, y)
            times.append(process_time() - begin)
        trainer.steps_for = chosen
        return min(times[1:])  # the first warms up the libraries

    print("\nThe paper's networks: processor time of torch's steps against NumPy's")
    kinds = (("halfspace", "leaky_relu"), ("equality", "bump"), ("rbf", "rbf"))
    for head, activation in kinds:
        for name, d, n, model in models(head, activation):
            X, y = rng.normal(size=(n, d)), (rng.random(n) < 0.3).astype(int)
            ours, by_torch = spent(model, X, y, chosen), spent(model, X, y, Steps)
            print(f"  {head:10s} {name:18s} {by_torch / ours:.1f} times as long")


def epoch(device):
    """One epoch of NSL-KDD: members as one against one network in a plain torch loop.

    All are the same network: batch normalisation, bumps, and a last bias that is learnt.
    """
    split, X, _ = nsl_kdd()
    plan = Training(epochs=1, batch_size=32, validation_fraction=0, learning_rate=3e-4)
    ours = {
        "hidden": (60,),
        "batch_norm": True,
        "closed": False,
        "loss": "squared",
        "training": plan,
        "standardize": False,  # the rows are, already
        "device": device,
    }

    def fit(n_members):
        separator = NetworkSeparator(n_members=n_members, random_state=0, **ours)
        return separator.fit(X, split.y_train)

    some = slice(None, None, 20)  # warms up the libraries, and the device
    NetworkSeparator(n_members=1, random_state=0, **ours).fit(X[some], split.y_train[some])
    plain_torch(X[some], split.y_train[some], device=device)
    times = {
        f"eqsep, {k} as one": seconds(lambda k=k: fit(k), device=device)[0] for k in (1, 5, 20)
    }
    plain, _ = seconds(lambda: plain_torch(X, split.y_train, device=device), device=device)
    print(f"\nOne epoch of NSL-KDD ({len(X):,} rows, {X.shape[1]} columns, hidden 60, batch 32)")
    print(f"  plain torch, 1 network {plain:8.2f} s")
    for name, time in times.items():
        print(f"  {name:22s} {time:8.2f} s   {time / plain:.2f} of the plain loop")


def plain_torch(X, y, *, device):
    """The network as anybody would write it: one member, nn.Sequential, torch's own Adam."""
    model = nn.Sequential(
        nn.Linear(X.shape[1], 60),
        nn.BatchNorm1d(60, eps=1e-3, momentum=0.01),
        Bump(sigma=0.5),
        nn.Linear(60, 1),
        Bump(sigma=0.5),
    ).to(device)
    rows = torch.as_tensor(X, dtype=torch.float32, device=device)
    target = torch.as_tensor(1 - y, dtype=torch.float32, device=device)
    adam = torch.optim.Adam(model.parameters(), lr=3e-4)
    for index in torch.randperm(len(X)).to(device).split(32):
        loss = nn.functional.mse_loss(model(rows[index])[:, 0], target[index])
        adam.zero_grad()
        loss.backward()
        adam.step()


def peers(device):
    """DeepOD's DeepSAD and DevNet against ours, at equal epochs and batches."""
    if find_spec("deepod") is None:
        print("\nDeepOD is not installed (pip install --no-deps deepod tqdm einops): left out")
        return
    from deepod.models import DeepSAD as TheirDeepSAD
    from deepod.models import DevNet

    split, X, X_test = nsl_kdd()
    some = np.random.default_rng(0).choice(len(X), 20_000, replace=False)
    rows, labels, epochs, batch = X[some], split.y_train[some], 10, 64
    plan = Training(epochs=epochs, batch_size=batch, validation_fraction=0)
    theirs = {
        "epochs": epochs,
        "batch_size": batch,
        "device": device,
        "verbose": 0,
        "random_state": 0,
    }

    def score_of(model):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(rows, labels).decision_function(X_test)

    models = {
        "DeepOD DeepSAD": TheirDeepSAD(**theirs),
        "DeepOD DevNet": DevNet(**theirs),
        "eqsep DeepSAD": DeepSAD(training=plan, pretraining=plan, device=device, random_state=0),
        "eqsep network, 1 member": NetworkSeparator(
            n_members=1, training=plan, device=device, random_state=0
        ),
        "eqsep network, 10 members": NetworkSeparator(
            n_members=10, training=plan, device=device, random_state=0
        ),
    }
    print(f"\nNSL-KDD, 20,000 training rows, {epochs} epochs, batch {batch}: average precision")
    for name, model in models.items():
        time, score = seconds(lambda model=model: score_of(model), device=device)
        print(f"  {name:26s} {time:8.2f} s   {average_precision_score(split.y_test, score):.3f}")


def thousand(device):
    """1,024 members on all of NSL-KDD, to the best weights of each."""
    split, X, X_test = nsl_kdd()
    plan = Training(epochs=30, batch_size=256, learning_rate=1e-3, patience=5, stratify=False)
    separator = NetworkSeparator(
        hidden=(60,), loss="squared", n_members=1024, training=plan, device=device, random_state=0
    )
    order = np.random.default_rng(0).permutation(len(X))
    time, _ = seconds(lambda: separator.fit(X[order], split.y_train[order]), device=device)
    some = np.random.default_rng(0).choice(len(X_test), 4000, replace=False)
    members = separator.member_scores(X_test[some])
    y = split.y_test[some]
    each = [average_precision_score(y, score) for score in members.T[:64]]
    together = average_precision_score(y, members.mean(axis=1))
    print(
        f"\n1,024 members on NSL-KDD ({len(X):,} rows, batch 256): {time:.1f} s to the best weights"
    )
    print(
        f"  epochs to the best weights: {separator.history_.best_epoch.mean() + 1:.1f} on average"
    )
    print(f"  overall average precision: {np.mean(each):.3f} a member, {together:.3f} together")


PARTS = {
    "axis": axis,
    "steps": steps,
    "published": published,
    "epoch": epoch,
    "peers": peers,
    "thousand": thousand,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], default=["axis", "epoch", "peers"]
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NarrowLayerWarning)  # the paper's widths are what is timed
    for part in options.parts:
        PARTS[part](options.device)
