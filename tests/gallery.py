"""Tiny files in the layouts in which benchmarks, harnesses and platforms publish judgments."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

MODELS = ("alpha", "beta", "gamma")
STRENGTH = {"alpha": 1.0, "beta": 0.3, "gamma": -0.6, "base": 0.0}
N = 24  # items


def _won(rng, one, other):
    """Whether ``one`` wins."""
    return rng.random() < 1 / (1 + np.exp(STRENGTH[other] - STRENGTH[one]))


def _right(rng, model):
    return int(_won(rng, model, "base"))


def _pairs(rng):
    for k in range(N):
        for one, other in (MODELS[:2], MODELS[1:], MODELS[::2]):
            yield k, *((one, other) if rng.random() < 0.5 else (other, one))


def alpaca_eval(rng, soft=False):
    for k in range(N):
        for model in MODELS:
            won = _won(rng, model, "base")
            value = (1.9 if won else 1.2) if soft else (2 if won else 1) if rng.random() < 0.9 else 0
            yield {
                "instruction": f"What is {k}?", "output_1": f"It is {k}.", "generator_1": "base",
                "output_2": f"{model} says {k}.", "generator_2": model, "dataset": ("koala", "vicuna")[k % 2],
                "annotator": "weighted_alpaca_eval_gpt4_turbo" if soft else "alpaca_eval_gpt4",
                "preference": float(value), "price_per_example": 0.01, "time_per_example": 1.5,
                **({"raw_completion": {"finish_reason": "stop", "text": "m"}} if soft else {}),
            }  # fmt: skip


def mt_bench_pair(rng):
    for k, one, other in _pairs(rng):
        first = "model_1" if _won(rng, one, other) else "model_2"
        yield {
            "question_id": 81 + k, "model_1": one, "model_2": other, "g1_winner": first,
            "g2_winner": first if rng.random() < 0.8 else "tie", "judge": ["gpt-4", "pair-v2"],
            "g1_user_prompt": "[User Question]", "g1_judgment": "[[A]]", "g2_user_prompt": "[User Question]",
            "g2_judgment": "[[B]]", "turn": 1 + k % 2, "tstamp": 1687222552.7 + k,
        }  # fmt: skip


def mt_bench_single(rng):
    for k in range(N):
        for model in MODELS:
            yield {
                "question_id": 81 + k, "model": model, "judge": ["gpt-4", "single-v1"], "user_prompt": "[Question]",
                "judgment": "Rating: [[8]]", "score": int(rng.integers(3, 8) + 2 * _right(rng, model)), "turn": 1,
                "tstamp": 1687222552.7 + k,
            }  # fmt: skip


def mt_bench_human(rng):
    for k, one, other in _pairs(rng):
        winner = "tie" if rng.random() < 0.1 else "model_a" if _won(rng, one, other) else "model_b"
        said = [{"role": "user", "content": f"Question {k}"}, {"role": "assistant", "content": f"Answer {k}"}]
        yield {
            "question_id": 81 + k, "model_a": one, "model_b": other, "winner": winner,
            "judge": f"expert_{k % 4}", "conversation_a": said, "conversation_b": said, "turn": 1 + k % 2,
        }  # fmt: skip


def arena_hard(rng, version=1):
    for k in range(N):
        for model in MODELS:
            won = _won(rng, model, "base")
            scores = ("B>A", "A>>B") if won else ("A>B", "B>A")
            if version == 1:
                games = [{"user_prompt": "<|User Prompt|>", "judgment": f"[[{x}]]", "score": x} for x in scores]
                yield {"question_id": f"q{k}", "model": model, "judge": "gpt-4-1106-preview", "games": games}
            else:
                games = [{"score": x, "judgment": {"answer": f"[[{x}]]"}, "prompt": []} for x in scores]
                yield {"uid": f"q{k}", "category": "hard_prompt", "judge": "gpt-4.1", "model": model,
                       "baseline": "base", "games": games}  # fmt: skip


def wild_vision(rng):
    for row in arena_hard(rng):
        yield {**row, "judge": "gpt-4o", "games": [{**row["games"][0], "user_prompt": "# Image"}], "tstamp": 1.7e9}


def wild_bench_pairs(rng):
    for k in range(N):
        won = _won(rng, "alpha", "base")
        tie = rng.random() < 0.1
        yield {
            "session_id": f"s{k}", "parsed_result": {"choice": "A++", "reason": "better"}, "model_A": None,
            "model_outputs": {"alpha": f"Long {k}.", "base": f"Short {k}."},
            "winner": "tie" if tie else "alpha" if won else "base", "extent": 0 if tie else int(rng.integers(1, 3)),
            "assignment": {"A": "alpha", "B": "base"}, "checklist": ["Is it right?"],
        }  # fmt: skip


def wild_bench_scores(rng):
    for k in range(N):
        yield {
            "session_id": f"s{k}", "model_output": f"Long {k}.", "model_test": "alpha", "parse_result": {"score": "7"},
            "score": str(rng.integers(3, 9)), "checklist": ["Is it right?"], "intent": "asks",
        }  # fmt: skip


def judge_bench(rng):
    for k in range(N):
        label = ("A>B", "B>A")[rng.integers(2)]
        other = {"A>B": "B>A", "B>A": "A>B"}
        first, second = (label if rng.random() < 0.8 else other[label] for _ in range(2))
        judged = [{"judgment": {"judge_model": "judge-m", "prompt": "?", "response": "[[A>B]]"}, "decision": decision}
                  for decision in (first, other[second])]  # fmt: skip
        yield {
            "pair_id": f"pair-{k}", "original_id": f"{k}", "source": ("mmlu-pro-law", "livebench-math")[k % 2],
            "question": f"What is {k}?", "response_model": "gpt-4o-2024-05-13", "response_A": f"It is {k}.",
            "response_B": f"Not {k}.", "label": label, "judge_name": "arena_hard", "judgments": judged,
        }  # fmt: skip


def llm_bar(rng):
    for k in range(N):
        label = int(rng.integers(1, 3))
        said = [label if rng.random() < 0.8 else 3 - label for _ in range(2)]
        results = {f"swap = {swap}": {"completion": [f"Output ({'ab'[x - 1]})", "stop"], "winner": str(x)}
                   for swap, x in zip((False, True), said, strict=True)}  # fmt: skip
        yield {"input": f"Do {k}.", "output_1": f"Done {k}.", "output_2": f"Not {k}.", "label": label,
               "results": results}  # fmt: skip


def reward_bench_2(rng):
    scores = rng.normal([1.0, 0, 0, 0], 1, (N, 4)).round(3).tolist()
    return {
        "text": [["..."] * 4] * N, "subset": [("Factuality", "Math")[k % 2] for k in range(N)],
        "id": [str(k) for k in range(N)], "scores": [[[x] for x in row] for row in scores],
        "results": [float(np.argmax(row) == 0) for row in scores], "num_correct": [1] * N, "model": "acme/reward-1",
        "model_type": "Seq. Classifier", "chat_template": "tokenizer",
    }  # fmt: skip


def panda_lm(rng):
    names = {"alpha": "bloom-7b", "beta": "llama-7b", "gamma": "opt-7b"}
    for k, one, other in _pairs(rng):
        truth = 1 if _won(rng, one, other) else 2
        said = [truth if rng.random() < 0.85 else int(rng.integers(0, 3)) for _ in range(3)]
        yield {
            "idx": k, "motivation_app": "Gmail", "task_id": f"user_oriented_task_{k}", "instruction": f"Do {k}.",
            "input": "", "cmp_key": f"{names[one]}_{names[other]}", "response1": f"Done {k}.", "response2": f"Not {k}.",
            **{f"annotator{n}": x for n, x in enumerate(said, 1)},
        }  # fmt: skip


def compar_ia(rng):
    for k, one, other in _pairs(rng):
        equal = rng.random() < 0.1
        chosen = one if _won(rng, one, other) else other
        yield {
            "timestamp": f"2025-01-{1 + k % 28:02d} 10:00:00", "model_a_name": one, "model_b_name": other,
            "model_pair_name": [one, other], "chosen_model_name": None if equal else chosen, "opening_msg": f"Q{k}",
            "both_equal": bool(equal), "conversation_a": [], "conversation_b": [], "conv_turns": 1,
            "conversation_pair_id": f"c{k}", "session_hash": f"h{k}", "visitor_id": f"v{k % 7}", "comments_a": None,
        }  # fmt: skip


def metr(rng):
    for agent in MODELS:
        for task in range(12):
            minutes = float(2.0 ** (task / 1.5))
            for run in range(2):
                good = rng.random() < 1 / (1 + minutes / (30 * np.exp(STRENGTH[agent])))
                yield {
                    "task_id": f"family{task % 4}/task{task}", "task_family": f"family{task % 4}",
                    "run_id": f"{agent}{task}{run}",
                    "alias": agent, "model": agent, "score_binarized": int(good), "score_cont": float(good),
                    "fatal_error_from": None, "human_minutes": minutes, "human_source": "baseline",
                    "task_source": "HCAST", "generation_cost": 0.1, "started_at": 0.0, "completed_at": 1000.0,
                    "equal_task_weight": 1 / 24, "invsqrt_task_weight": 1 / 24,
                }  # fmt: skip


def helm(rng, model):
    for k in range(N):
        yield {
            "instance_id": f"id{k}", "train_trial_index": 0, "stats": [
                {"name": {"name": "num_references", "split": "test"}, "count": 1, "sum": 4, "mean": 4.0},
                {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": (x := float(_right(rng, model))),
                 "sum_squared": x, "min": x, "max": x, "mean": x, "variance": 0.0, "stddev": 0.0}],
        }  # fmt: skip


def promptfoo(rng):
    rows = []
    for k in range(N):
        for n, model in enumerate(MODELS):
            good = bool(_right(rng, model))
            rows.append({
                "promptIdx": n, "testIdx": k, "testCase": {"vars": {"x": k}, "assert": []},
                "promptId": "p0", "provider": {"id": f"openai:{model}", "label": ""}, "id": f"r{k}{n}",
                "prompt": {"raw": f"What is {k}?", "label": "What is {{x}}?"}, "vars": {"x": k},
                "response": {"output": f"{k}", "tokenUsage": {}}, "score": float(good), "success": good, "error": None,
                "namedScores": {}, "latencyMs": 5, "cost": 0, "failureReason": 0 if good else 1, "metadata": {},
                "gradingResult": {"pass": good, "score": float(good), "reason": "", "componentResults": []},
            })  # fmt: skip
    stats = {"successes": 1, "failures": 1, "errors": 0}
    return {"evalId": "eval-1", "results": {"version": 3, "timestamp": "2025-01-01T00:00:00Z", "prompts": [],
                                            "results": rows, "stats": stats}, "config": {}, "shareableUrl": None,
            "metadata": {}}  # fmt: skip


def mlflow(rng):
    for k in range(N):
        feedback = [{"assessment_id": f"a-{k}", "assessment_name": "correctness", "trace_id": f"tr-{k}",
                     "source": {"source_type": "LLM_JUDGE", "source_id": "openai:/gpt-4.1"},
                     "feedback": {"value": bool(_right(rng, "alpha"))}, "valid": True}]  # fmt: skip
        yield {
            "trace_id": f"tr-{k}", "trace": "{}", "client_request_id": None, "state": "OK", "request_time": 1.7e12 + k,
            "execution_duration": 12, "request": {"question": f"What is {k}?"}, "response": f"{k}",
            "trace_metadata": {"mlflow.modelId": "m-1"}, "tags": {"mlflow.traceName": "predict"}, "spans": [],
            "assessments": feedback,
        }  # fmt: skip


def leaderbot(rng):
    counts = {}
    for _, one, other in _pairs(rng):
        i, j = sorted(MODELS.index(x) for x in (one, other))
        row = counts.setdefault((i, j), [0, 0, 0])
        row[2 if rng.random() < 0.1 else 0 if _won(rng, MODELS[i], MODELS[j]) else 1] += 1
    return {"models": list(MODELS), "X": [list(x) for x in counts], "Y": list(counts.values())}


def written(folder):
    """Write the gallery; return its files and folders by name."""
    made = {}

    def write(name, rows, path):
        path = folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = rows if isinstance(rows, dict) else list(rows)
        lines = path.suffix == ".jsonl"
        path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows, indent=1))
        made.setdefault(name, path)

    def rng():
        return np.random.default_rng(0)

    write("AlpacaEval, old", alpaca_eval(rng()), "alpaca/annotations.json")
    write("AlpacaEval, weighted", alpaca_eval(rng(), soft=True), "alpaca_weighted/annotations.json")
    write("MT-bench, pairs", mt_bench_pair(rng()), "gpt-4_pair.jsonl")
    write("MT-bench, single", mt_bench_single(rng()), "gpt-4_single.jsonl")
    write("MT-bench, people", mt_bench_human(rng()), "mt_bench_human.jsonl")
    write("Arena-Hard v0.1", arena_hard(rng()), "arena_hard_v0.1.jsonl")
    write("Arena-Hard v2", arena_hard(rng(), 2), "arena_hard_v2.jsonl")
    write("WildVision", wild_vision(rng()), "wild_vision.jsonl")
    write("WildBench, pairs", wild_bench_pairs(rng()), "wild_bench/pairwise/alpha.json")
    write("WildBench, scores", wild_bench_scores(rng()), "wild_bench/score/alpha.json")
    write("JudgeBench", judge_bench(rng()), "dataset=judgebench,response_model=gpt-4o.jsonl")
    write("LLMBar", llm_bar(rng()), "llm_bar/evaluators/GPT-4/Swap/result.json")
    write("RewardBench 2", reward_bench_2(rng()), "reward_bench_2/acme/reward-1.json")
    write("PandaLM", panda_lm(rng()), "testset-v1.json")
    write("ComparIA", compar_ia(rng()), "comparia.jsonl")
    write("METR", metr(rng()), "runs.jsonl")
    for model in MODELS[:2]:
        run = f"helm/mmlu:subject=law,model=acme_{model}"
        write("HELM", helm(rng(), model), f"{run}/per_instance_stats.json")
        spec = {"name": run, "adapter_spec": {"model": f"acme/{model}"}, "scenario_spec": {}}
        write("HELM", spec, f"{run}/run_spec.json")
        write("HELM", [], f"{run}/stats.json")
    write("promptfoo", promptfoo(rng()), "promptfoo/results.json")
    write("MLflow", mlflow(rng()), "traces.jsonl")
    write("leaderbot", leaderbot(rng()), "chatbotarena.json")
    pd.DataFrame(mlflow(rng())).astype({"request": str, "trace_metadata": str, "tags": str, "spans": str}).to_parquet(
        folder / "traces.parquet"
    )
    return made
