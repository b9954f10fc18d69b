"""Printed numbers of arXiv:2606.13221: columns that follow from others, and a text that its table contradicts."""

import numpy as np
import pytest

from jaxeval import conformal_quantile

#: Judges in the order of Table 8; held-out MAE by hard targets, by soft ones, by constants c = .55, .65, .75, .85, .95.
TABLE_8 = {
    "DeepSeek-V3.2": (63.4, 17.1, (39.5, 27.4, 30.2, 48.3, 74.0)),
    "GPT-OSS-120B": (47.4, 14.4, (40.8, 29.3, 26.5, 40.5, 60.0)),
    "GPT-OSS-20B": (34.5, 19.8, (41.7, 30.6, 25.5, 32.3, 47.5)),
    "Gemma4-26B-A4B": (55.9, 15.7, (40.1, 27.5, 27.6, 44.0, 67.9)),
    "Gemma4-E4B": (48.2, 21.0, (40.9, 29.9, 27.1, 38.4, 56.7)),
    "Llama-3.3-70B": (43.9, 24.5, (41.9, 32.0, 28.1, 36.3, 50.0)),
    "Qwen3-32B": (27.5, 16.7, (42.2, 31.3, 24.8, 30.3, 42.7)),
    "Qwen3.5-27B": (46.0, 13.6, (42.2, 29.3, 25.8, 40.3, 61.5)),
}


def reduction(before, after):
    return 100 * (1 - np.asarray(after) / np.asarray(before))


def test_reductions_of_table_2():
    percent = {"DeepSeek-V3.2": 73, "Gemma4-26B-A4B": 72, "Qwen3.5-27B": 70, "GPT-OSS-120B": 70, "Gemma4-E4B": 57,
               "Llama-3.3-70B": 44, "GPT-OSS-20B": 42, "Qwen3-32B": 39}  # fmt: skip
    for judge, own in percent.items():
        hard, soft, _ = TABLE_8[judge]
        assert reduction(hard, soft) == pytest.approx(own, abs=0.7)
    assert np.mean([own[0] for own in TABLE_8.values()]) == pytest.approx(45.9, abs=0.06)
    assert np.mean([own[1] for own in TABLE_8.values()]) == pytest.approx(17.9, abs=0.06)


def test_means_of_table_8_are_not_those_of_its_text():
    """The row of means is right. Appendix H.2 says 17.0 at c = .75 and 36.3 at .95, and "only better than Hard-Elo"."""
    means = np.mean([own[2] for own in TABLE_8.values()], axis=0)
    assert means == pytest.approx([41.1, 29.7, 26.9, 38.8, 57.6], abs=0.1)
    assert means[2] - 17.0 > 9
    assert means[4] > 45.9 > 36.3  # worse than hard targets


def test_coverage_of_table_3_counts_28_models_in_5_splits():
    """Soft and hard: whole numbers of 140. The exact rank promises 26 of 28."""
    percent = np.array([92.9, 92.9, 95.7, 95.7, 94.3, 94.3, 92.1, 96.4, 95.0, 97.9, 90.0, 95.7, 94.3, 95.7, 88.6, 90.0])
    held = 1.4 * percent
    assert np.abs(held - np.round(held)).max() < 0.07
    assert conformal_quantile(np.arange(1.0, 28.0), 0.9) == 26  # the 26th of 27
    error = np.sqrt(26 / 28 * 2 / 28 / 140)
    assert np.abs(percent / 100 - 26 / 28).max() < 3 * error


def test_reductions_of_table_4():
    rows = [(88.0, 18.8, 79), (77.5, 19.2, 75), (70.9, 17.4, 75), (69.3, 20.0, 71), (67.5, 22.8, 66), (53.7, 24.0, 55),
            (56.7, 31.1, 45), (161.3, 30.6, 81), (146.2, 32.3, 78), (102.0, 30.9, 70), (107.9, 33.0, 69),
            (68.0, 35.3, 48), (82.9, 47.8, 42), (62.4, 49.7, 20)]  # fmt: skip
    hard, soft, percent = np.array(rows).T
    np.testing.assert_allclose(reduction(hard, soft), percent, atol=0.6)


def test_reductions_of_table_5():
    rows = [(405, 110, 73), (405, 114, 72), (361, 112, 69), (268, 126, 53), (230, 140, 39), (224, 158, 30),
            (622, 136, 78), (545, 138, 75), (449, 130, 71), (399, 143, 64), (278, 147, 47), (339, 217, 36),
            (281, 229, 19)]  # fmt: skip
    hard, soft, percent = np.array(rows).T
    np.testing.assert_allclose(reduction(hard, soft), percent, atol=0.7)
    assert [np.mean(percent[:6]), np.mean(percent[6:])] == pytest.approx([56, 56], abs=0.6)


def test_reductions_and_gains_of_table_6():
    rows = [(86.6, 20.6, 76, 0.920, 0.923, 0.004), (129.7, 27.9, 79, 0.878, 0.885, 0.006),
            (145.6, 28.1, 81, 0.854, 0.888, 0.034), (170.2, 37.3, 78, 0.807, 0.801, -0.005),
            (273.9, 60.1, 78, 0.774, 0.785, 0.011), (144.5, 25.2, 83, 0.836, 0.877, 0.042),
            (229.3, 52.9, 77, 0.796, 0.801, 0.005), (197.2, 35.6, 82, 0.766, 0.786, 0.020),
            (231.6, 35.7, 85, 0.666, 0.736, 0.070), (269.2, 41.3, 85, 0.645, 0.745, 0.100),
            (308.3, 80.8, 74, 0.661, 0.691, 0.029), (333.6, 58.1, 83, 0.507, 0.596, 0.089),
            (354.8, 90.6, 74, 0.680, 0.778, 0.098)]  # fmt: skip
    hard, soft, percent, before, after, gain = np.array(rows).T
    np.testing.assert_allclose(reduction(hard, soft), percent, atol=0.6)
    np.testing.assert_allclose(after - before, gain, atol=0.0011)


def test_means_of_table_7():
    ece = {0.050: (0.027, 0.102, 0.031, 0.036, 0.040, 0.051, 0.058, 0.055),
           0.054: (0.040, 0.053, 0.046, 0.051, 0.044, 0.091, 0.057),
           0.058: (0.101, 0.080, 0.044, 0.034, 0.029, 0.057, 0.063)}  # fmt: skip
    for mean, own in ece.items():
        assert np.mean(own) == pytest.approx(mean, abs=0.0007)


def test_shares_of_figures_8_and_9():
    assert [round(100 * 49 / 52), round(100 * 107 / 116)] == [94, 92]
    assert [round(328 / 87, 1), round(580 / 117, 1)] == [3.8, 5.0]
