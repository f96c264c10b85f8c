"""TabM (Gorishniy et al., ICLR 2025) as a classifier: its authors' recipe, with early stopping.

The package is a network without a training loop. This one is as in its example: AdamW with
learning rate 0.002 and weight decay 0.0003, batches of 256 rows, gradients of norm 1 at most, each
member of the ensemble with a loss of its own, and the state of the best epoch, which 16 worse ones
have followed. The network has its package's default size, which is for a GPU: a processor's core
takes minutes for a small table.
"""

import copy

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from tabm import TabM
from torch import Tensor, nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEWEST_TO_STOP_BY = 5


class TabMClassifier(ClassifierMixin, BaseEstimator):
    """An ensemble of small networks that share most of their weights.

    A fifth of the rows of each class is held out to stop by. Of fewer than five anomalies none is:
    training then takes a fixed number of epochs.

    Parameters
    ----------
    epochs, patience : int
        At most so many epochs; so many without an improvement end it.
    epochs_without_stopping : int
        Where there is nothing to stop by.
    learning_rate, weight_decay : float
        Of AdamW.
    """

    def __init__(
        self,
        epochs=100,
        patience=16,
        epochs_without_stopping=30,
        learning_rate=2e-3,
        weight_decay=3e-4,
        random_state=None,
    ):
        self.epochs = epochs
        self.patience = patience
        self.epochs_without_stopping = epochs_without_stopping
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "TabMClassifier":
        torch.manual_seed(self.random_state)
        self.classes_ = np.unique(y)
        self.net_ = TabM.make(n_num_features=X.shape[1], d_out=2).to(DEVICE)
        self.optimiser_ = torch.optim.AdamW(
            self.net_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        if np.bincount(y)[1] < FEWEST_TO_STOP_BY:
            for _ in range(self.epochs_without_stopping):
                self._epoch(_rows(X), torch.as_tensor(y, device=DEVICE))
            return self
        parts = train_test_split(X, y, test_size=0.2, stratify=y, random_state=self.random_state)
        X_train, X_held, y_train, y_held = parts
        best, best_loss, since = None, np.inf, 0
        for _ in range(self.epochs):
            self._epoch(_rows(X_train), torch.as_tensor(y_train, device=DEVICE))
            loss, since = log_loss(y_held, self.predict_proba(X_held)), since + 1
            if loss < best_loss:
                best, best_loss, since = copy.deepcopy(self.net_.state_dict()), loss, 0
            if since == self.patience:
                break
        self.net_.load_state_dict(best)
        return self

    def _epoch(self, X: Tensor, y: Tensor) -> None:
        """One step on each batch."""
        self.net_.train()
        for batch in torch.randperm(len(y), device=DEVICE).split(256):
            logits = self.net_(X[batch])  # (n, k, 2)
            target = y[batch].repeat_interleave(logits.shape[1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target)
            self.optimiser_.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.net_.parameters(), 1.0)
            self.optimiser_.step()

    @torch.inference_mode()
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """The mean of the members' probabilities."""
        self.net_.eval()
        chunks = [self.net_(rows).softmax(-1).mean(1) for rows in _rows(X).split(4096)]
        return torch.cat(chunks).double().cpu().numpy()


def _rows(X: np.ndarray) -> Tensor:
    return torch.as_tensor(X, dtype=torch.float32, device=DEVICE)
