// Votes of a file that the reader drops: CSV, TSV or JSON lines. Columns are found as the command finds them: by the usual
// names, by names that differ as both sides do, and by their values. `words` are those of jaxeval.data, see page.py.

const POINTS = /score|goals|points|sets|runs/;
const NO_SIDES = /rater|annotator|judge|voter|worker|reviewer|label|expert|person|people|user|length|token|elo/;
const SENTENCE = /[.!?]\s*$|(?:\S+\s+){4}\S/;
const [LONGEST_NAME, MOST_SENTENCES, MOST_SELF_PLAY, MOST_UNREAD] = [60, 0.2, 0.05, 3];
const BAD = /both.?bad|bothbad|neither/;

/** A name without case and signs. */
function foldedName(name) {
	return name.toLowerCase().replace(/[\s_.-]+/g, "");
}

/** The rows of a text as {names, rows}: rows are lists of texts, "" where a value is missing. */
function tableOf(text, fileName) {
	const plain = text.replace(/^\ufeff/, "");
	const found = /^\s*[[{]/.test(plain)
		? jsonTable(plain)
		: separatedTable(plain, /\.tsv$/i.test(fileName) ? "\t" : null);
	const twice = found.names.find((name, k) => found.names.indexOf(name) !== k);
	if (twice !== undefined) throw new Error(`two columns are called "${twice}": rename one`);
	if (found.rows.length === 0) throw new Error("the file has no rows");
	return found;
}

/** Rows of a JSON array, or of a line for each row. */
function jsonTable(text) {
	const parsed = text.trimStart().startsWith("[")
		? JSON.parse(text)
		: text.split("\n").flatMap((line, k) => {
				if (line.trim() === "") return [];
				try {
					return [JSON.parse(line)];
				} catch {
					throw new Error(`line ${count(k + 1)} is no JSON`);
				}
			});
	const names = [...new Set(parsed.flatMap((row) => Object.keys(row ?? {})))];
	const plain = (x) => (x === null || x === undefined ? "" : typeof x === "object" ? JSON.stringify(x) : String(x));
	return { names, rows: parsed.map((row) => names.map((name) => plain(row?.[name]))) };
}

/** Rows of a text with separators and quotes (RFC 4180). */
function separatedTable(text, given) {
	const head = text.slice(0, text.search(/[\r\n]|$/));
	const often = (sign) => head.split(sign).length;
	const sign = given ?? [",", "\t", ";", "|"].reduce((best, other) => (often(other) > often(best) ? other : best));
	const rows = [];
	let [row, cell, quoted] = [[], "", false];
	for (let k = 0; k < text.length; k++) {
		const x = text[k];
		if (quoted) {
			if (x !== '"') cell += x;
			else if (text[k + 1] === '"') {
				cell += x;
				k += 1;
			} else quoted = false;
		} else if (x === '"' && cell === "") quoted = true;
		else if (x === sign) {
			row.push(cell);
			cell = "";
		} else if (x === "\n" || x === "\r") {
			if (x === "\r" && text[k + 1] === "\n") k += 1;
			rows.push([...row, cell]);
			[row, cell] = [[], ""];
		} else cell += x;
	}
	if (quoted) throw new Error("a quote opens and does not close");
	if (cell !== "" || row.length > 0) rows.push([...row, cell]);
	const [names, ...rest] = rows.filter((own) => own.some((x) => x.trim() !== ""));
	if (names === undefined) throw new Error("the file is empty");
	const odd = rest.findIndex((own) => own.length !== names.length);
	if (odd >= 0)
		throw new Error(`row ${count(odd + 1)} has ${rest[odd].length} values, and there are ${names.length} columns`);
	return { names: names.map((name) => name.trim()), rows: rest.map((own) => own.map((x) => x.trim())) };
}

/** The columns of votes, {a, b, result: [names], coding}; null where nothing fits. */
function foundColumns(table, words) {
	for (const [a, b] of sidesOf(table, words)) {
		const rest = table.names.filter((name) => name !== a && name !== b);
		const scores = pairsOf(rest, words).filter(([x]) => POINTS.test(foldedName(x)));
		const usual = words.results.flatMap((result) => rest.filter((name) => foldedName(name) === result));
		const ways = [
			...usual.map((name) => [name]),
			...scores,
			...rest.filter((name) => !usual.includes(name)).map((name) => [name]),
		];
		for (const result of ways) {
			const read = readVotes(table, { a, b, result }, words);
			if (read.votes !== null && read.unread === 0) return { a, b, result };
		}
	}
	return null;
}

/** Pairs of names that differ by the marks of two sides, as home_team and away_team. */
function pairsOf(names, words) {
	const parts = (name) => name.toLowerCase().split(/[\s_.-]+|(?<=[a-z])(?=\d)/);
	return names.flatMap((x) =>
		names.flatMap((y) => {
			const [own, its] = [parts(x), parts(y)];
			const changed = own.map((word, k) => [word, its[k]]).filter(([one, other]) => one !== other);
			const marks = words.marks.some(([one, other]) => changed[0]?.[0] === one && changed[0]?.[1] === other);
			return own.length === its.length && changed.length === 1 && marks ? [[x, y]] : [];
		}),
	);
}

/** Pairs of columns that may name both sides: by their names, then by their values. */
function sidesOf(table, words) {
	const { names } = table;
	const usual = ["modela", "modelb"].map((own) => names.find((name) => foldedName(name) === own));
	if (usual.every((name) => name !== undefined)) return [usual];
	const values = new Map(names.map((name, k) => [name, table.rows.map((row) => row[k])]));
	const holdsNames = (name) => {
		const known = values.get(name).filter((x) => x !== "");
		const distinct = new Set(known);
		return (
			known.length > 0 &&
			known.every((x) => x.length <= LONGEST_NAME) &&
			known.filter((x) => SENTENCE.test(x)).length <= MOST_SENTENCES * known.length &&
			distinct.size <= Math.max(Math.floor((known.length * 2) / 3), 2) &&
			![...distinct].every((x) => /^(0|1|true|false)$/i.test(x))
		);
	};
	const fit = names.filter(
		(name) => !NO_SIDES.test(foldedName(name)) && !POINTS.test(foldedName(name)) && holdsNames(name),
	);
	const shared = ([x, y]) => {
		const [own, its] = [new Set(values.get(x)), new Set(values.get(y))];
		const both = [...own].filter((value) => its.has(value)).length;
		return both / Math.max(own.size, its.size);
	};
	const equal = ([x, y]) => values.get(x).filter((value, k) => value === values.get(y)[k]).length / table.rows.length;
	const named_ = pairsOf(fit, words).filter((pair) => shared(pair) > 0);
	if (named_.length > 0) return named_;
	const pairs = fit.flatMap((x, k) => fit.slice(k + 1).map((y) => [x, y]));
	const alike = pairs.filter((pair) => shared(pair) >= 0.5 && equal(pair) <= MOST_SELF_PLAY);
	return alike.length === 1 ? alike : [];
}

/**
 * Votes of a table: {votes, names, n, self, missing, unread, told}; `votes` is null where no result can be read. Rows of a
 * model against itself, and rows without a value, are counted and left out.
 */
function readVotes(table, { a, b, result }, words) {
	const at = (name) => table.names.indexOf(name);
	const [i, j, columns] = [at(a), at(b), result.map(at)];
	const whole = table.rows.filter((row) => [i, j, ...columns].every((k) => row[k] !== ""));
	const outcomeOf = codingOf(whole, i, j, columns, words);
	if (outcomeOf === null) return { votes: null, unread: whole.length };
	const names = [...new Set(whole.flatMap((row) => [row[i], row[j]]))].sort();
	const place = new Map(names.map((name, k) => [name, k]));
	const sums = new Map();
	let [self, unread, bad] = [0, 0, 0];
	const odd = new Set();
	for (const row of whole) {
		const outcome = outcomeOf(row);
		if (outcome === undefined) {
			unread += 1;
			if (odd.size < MOST_UNREAD) odd.add(row[columns[0]]);
			continue;
		}
		const [x, y] = [place.get(row[i]), place.get(row[j])];
		if (x === y) {
			self += 1;
			continue;
		}
		if (outcome === 1 && BAD.test(row[columns[0]].toLowerCase())) bad += 1;
		const key = Math.min(x, y) * names.length + Math.max(x, y);
		if (!sums.has(key)) sums.set(key, [0, 0, 0]);
		sums.get(key)[x < y ? outcome : 2 - outcome] += 1;
	}
	const keys = [...sums.keys()].sort((x, y) => x - y);
	const columnOf = (k) => Float64Array.from(keys, (key) => sums.get(key)[k]);
	const counts = OUTCOMES.map(columnOf);
	const votes = {
		size: names.length,
		first: Int32Array.from(keys, (key) => Math.floor(key / names.length)),
		second: Int32Array.from(keys, (key) => key % names.length),
		count: counts,
		weight: counts,
		square: counts,
	};
	const n = counts.flatMap((own) => [...own]).reduce((sum, x) => sum + x, 0);
	const missing = table.rows.length - whole.length;
	const told = [
		`Sides in "${a}" and "${b}", results in ${result.map((name) => `"${name}"`).join(" and ")}.`,
		bad > 0 && `${counted(bad, "vote")} for "both bad" ${bad === 1 ? "counts" : "count"} as ties.`,
		self > 0 && `${counted(self, "row")} of a model against itself left out.`,
		missing > 0 && `${counted(missing, "row")} without a model or a result left out.`,
		unread > 0 &&
			`${counted(unread, "row")} left out, whose result is not known: ${[...odd].map((x) => `"${x}"`).join(", ")}.`,
	];
	return { votes: n > 0 ? votes : null, names, n, self, missing, unread, told: told.filter(Boolean) };
}

/** A function of a row that gives its outcome (0: side A, 1: a tie, 2: side B) or undefined; null where none fits. */
function codingOf(rows, i, j, columns, words) {
	if (columns.length === 2) {
		const [x, y] = columns;
		const finite = rows.every(
			(row) => row[x] !== "" && Number.isFinite(Number(row[x])) && Number.isFinite(Number(row[y])),
		);
		return finite ? (row) => 1 - Math.sign(Number(row[x]) - Number(row[y])) : null;
	}
	const [k] = columns;
	const distinct = new Set(rows.map((row) => row[k].toLowerCase()));
	const known = (own) => [...distinct].filter((value) => own[value] !== undefined).length;
	const decided = (own) => [...distinct].some((value) => own[value] !== undefined && own[value] !== 1);
	const family = words.families.filter(decided).find((own) => known(own) === distinct.size);
	if (family) return (row) => family[row[k].toLowerCase()];
	const ties = words.ties;
	const byName = (row) => (row[k] === row[i] ? 0 : row[k] === row[j] ? 2 : ties[row[k].toLowerCase()]);
	if (rows.length > 0 && rows.every((row) => byName(row) !== undefined)) return byName;
	const partial = words.families.filter(decided).find((own) => known(own) > distinct.size / 2);
	return partial ? (row) => partial[row[k].toLowerCase()] : null;
}
