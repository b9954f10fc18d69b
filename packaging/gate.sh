#!/usr/bin/env bash
# The step of action.yml: asks for the verdict, hands it on, and ends with 0 where the job may go on.
#
# Inputs are environment variables, so that no text of theirs is run. GITHUB_OUTPUT, GITHUB_STEP_SUMMARY and RUNNER_TEMP
# are GitHub's.
set -euo pipefail

# lines TEXT: its lines that are not empty, as arguments.
lines() { mapfile -t found < <(printf '%s\n' "$1" | sed '/^[[:space:]]*$/d'); }

level=$(awk -v alpha="$ALPHA" 'BEGIN {printf "%.10g", 1 - alpha}')
folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/jaxeval-gate-XXXXXX")
arguments=(--gate "--margin=$MARGIN" "--level=$level" "--summary=$folder/summary.md" "--json=$folder/gate.json")
[ "$PEEK" != true ] || arguments+=(--peek)
[ -z "$JUNIT" ] || arguments+=("--junit=$JUNIT")
lines "$OPTIONS"
arguments+=("${found[@]}")
lines "$FILES"

status=0
jaxeval compare-scores "${arguments[@]}" -- "$CANDIDATE" "$BASELINE" "${found[@]}" || status=$?
verdicts=(PASS FAIL INCONCLUSIVE)
[ -n "${verdicts[$status]:-}" ] || exit "$status"

cat "$folder/summary.md" >> "$GITHUB_STEP_SUMMARY"
mark=end-$RANDOM$RANDOM
{
  echo "verdict=${verdicts[$status]}"
  echo "json=$folder/gate.json"
  echo "summary<<$mark"
  cat "$folder/summary.md"
  echo "$mark"
} >> "$GITHUB_OUTPUT"
[ "$status" != 2 ] || [ "$INCONCLUSIVE" = fail ] || status=0
exit "$status"
