"""Public data sets with ready schemas, and simulated ones with exactly known distances."""

from corrdp.datasets.adult import load_adult
from corrdp.datasets.cache import DatasetError, data_home
from corrdp.datasets.correlated import make_correlated
from corrdp.datasets.credit import load_credit
from corrdp.datasets.dataset import Dataset
from corrdp.datasets.labsup import load_labsup
from corrdp.datasets.medical_cost import load_medical_cost
from corrdp.datasets.presets import make_copy, make_near_copy, make_parity, make_xor
from corrdp.datasets.regression import make_regression
from corrdp.datasets.sepsis import load_sepsis
from corrdp.datasets.simulated import Simulated

__all__ = [
    "Dataset",
    "DatasetError",
    "Simulated",
    "data_home",
    "load_adult",
    "load_credit",
    "load_labsup",
    "load_medical_cost",
    "load_sepsis",
    "make_copy",
    "make_correlated",
    "make_near_copy",
    "make_parity",
    "make_regression",
    "make_xor",
]
