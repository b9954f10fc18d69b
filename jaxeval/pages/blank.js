// A page without a board: readers drop a file of votes, and the page becomes its board. Nothing leaves the browser.

const RESAMPLES = 1_000;
const LARGEST_FILE = 500_000_000; // characters that a text may have

/** The frame of a page that takes a file; `show(data)` draws the page of its votes. */
function dropZone(data, show) {
	const told = element(
		"p",
		{ class: "told", role: "status" },
		"Nothing leaves this browser: the page asks no network for anything.",
	);
	const columns = element("div", { class: "bar-of-fields" });
	const input = element("input", {
		type: "file",
		accept: ".csv,.tsv,.jsonl,.json,.ndjson,.txt",
		onchange: () => input.files[0] && open(input.files[0]),
	});
	const node = element(
		"section",
		{ class: "drop", "aria-label": "Your votes" },
		element("h2", {}, "Drop your votes here"),
		element("p", {}, "A CSV, TSV or JSON lines file with a row for each vote: the two models, and who won."),
		labelled("File", input),
		told,
		columns,
	);
	for (const name of ["dragover", "drop"])
		document.addEventListener(name, (event) => {
			event.preventDefault();
			if (name === "drop" && event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
		});
	let turn = 0;

	const fail = (error) => {
		told.textContent = `This file cannot be read: ${error.message}`;
	};
	const open = async (file) => {
		try {
			if (file.size > LARGEST_FILE) throw new Error("it has more than 500 megabytes: take the command");
			told.textContent = `Reading ${file.name} \u2026`;
			const table = tableOf(await file.text(), file.name);
			const found = foundColumns(table, data.blank);
			choose(table, found ?? { a: table.names[0], b: table.names[1] ?? "", result: [table.names.at(-1)] }, file.name);
			if (found === null)
				throw new Error("the values do not say which columns are the sides and the result: choose them");
			rate(table, found, file.name);
		} catch (error) {
			fail(error);
		}
	};

	const choose = (table, found, name) => {
		const list = (value) => {
			const own = selection(table.names.map((text) => [text, text]));
			own.value = value;
			return own;
		};
		const [a, b, result] = [found.a, found.b, found.result[0]].map(list);
		const again = button("Rate", () => {
			const second = found.result[0] === result.value ? found.result.slice(1) : [];
			rate(table, { a: a.value, b: b.value, result: [result.value, ...second] }, name, true);
		});
		columns.replaceChildren(labelled("First side", a), labelled("Second side", b), labelled("Result", result), again);
	};

	const rate = async (table, found, name, chosen = false) => {
		const own = ++turn;
		try {
			const { families, codes } = data.blank;
			const words = chosen ? { ...data.blank, families: [...families, ...codes] } : data.blank; // 1 is the first side
			const { votes, names, n, told: lines } = readVotes(table, found, words);
			if (votes === null) throw new Error(`no result of "${found.result.join('", "')}" can be read`);
			if (names.length > MOST_REFITTED)
				throw new Error(`${names.length} models are too many here: up to ${MOST_REFITTED}`);
			const began = performance.now();
			const made = { name, names, votes, n, lines, noun: data.competitor };
			show(await pageOf(data, made, boardOfFit(votes, names)));
			told.textContent = `${lines.join(" ")} Resampling \u2026`;
			const board = await inWorker(votes, names, data.competitor, (done) => {
				if (own === turn)
					told.textContent = `${lines.join(" ")} ${count(done)} of ${count(RESAMPLES)} resamples \u2026`;
			});
			if (own !== turn) return; // the reader went on
			const full = await pageOf(data, made, board);
			show(full);
			told.textContent = `${lines.join(" ")} ${count(RESAMPLES)} resamples in ${fixed((performance.now() - began) / 1000)} s.`;
			columns.append(button("Save this page", () => save(full, name)));
		} catch (error) {
			fail(error);
		}
	};
	return node;
}

/** The board of the fit alone: ratings with sandwich errors, no tiers and no sets of ranks. */
function boardOfFit(votes, names) {
	const fit = fitVotes(votes, false);
	const { ratings, errors } = ratedBoard(fit, { kind: "mean", rating: 1000 });
	const models = names.map((_, k) => k).filter((k) => fit.battles[k] > 0);
	const rank = ranksOf(models.map((model) => ({ model, rating: ratings[model] })));
	const rows = models
		.sort((a, b) => (rank.get(a) ?? Infinity) - (rank.get(b) ?? Infinity))
		.map((model) => {
			const row = { model, votes: fit.battles[model] };
			if (fit.standing[model]) row.flags = fit.standing[model];
			if (!Number.isFinite(ratings[model])) return row;
			const half = NORMAL_95 * errors[model];
			return {
				...row,
				rank: rank.get(model),
				rating: ratings[model],
				...(half > 0 && { lower: ratings[model] - half, upper: ratings[model] + half }),
			};
		});
	return { rows, answer: "Resampling: who leads is not said yet.", penalised: 0, converged: fit.converged };
}

/** Run `resampledBoard` beside the page. */
function inWorker(votes, names, noun, tell) {
	const address = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" }));
	const worker = new Worker(address);
	return new Promise((done, failed) => {
		const end = (settle, value) => {
			worker.terminate();
			URL.revokeObjectURL(address);
			settle(value);
		};
		worker.onerror = (event) => end(failed, new Error(event.message));
		worker.onmessage = ({ data }) => (data.board ? end(done, data.board) : tell(data.done));
		const { size, first, second, count: counts } = votes;
		worker.postMessage({
			votes: { size, first, second, count: counts },
			names,
			n: RESAMPLES,
			seed: 0,
			noun: { ...noun },
		});
	});
}

/** The data of a page with one board, as page.py makes them. */
async function pageOf(blank, { name, names, votes, n, lines, noun }, { rows, answer, penalised, converged }) {
	const board = {
		id: "all-votes",
		title: "All votes",
		answer,
		category: null,
		controls: [],
		rows,
		n_models: rows.length,
		n_votes: n,
		notes: [],
		warnings: converged ? [] : ["the fit did not converge: the votes hardly determine some ratings"],
		pairs: { models: names.map((_, k) => k), kind: "counts", text: await packPairs(votes) },
		what_if: null,
		law: { name: "logit", unit: ELO_PER_LOGIT },
		gauge: { kind: "mean", model: null, rating: 1000 },
		reweight: false,
	};
	const made = new Date().toISOString().slice(0, 10);
	const few =
		penalised > 0
			? ` Intervals of ${counted(penalised, noun.one, noun.many)} with few votes are from a penalised fit (Firth).`
			: "";
	const facts = [counted(rows.length, noun.one, noun.many), counted(n, "vote"), `as of ${made}`, "95% intervals"];
	return {
		...blank,
		title: name,
		answer,
		facts: facts.join(" \u00b7 "),
		made,
		about: [
			...lines,
			`Bradley-Terry by maximum likelihood, a tie as half a win, mean rating 1000; ${count(RESAMPLES)} multinomial resamples of the votes, seed 0, percentile intervals.${few}`,
			"Rank ranges and tiers: differences of all pairs in the resamples (max-t).",
		],
		models: names.map((text) => ({ name: text, about: {} })),
		boards: [board],
	};
}

/** Write the page of a board to a file: this document with other data. */
function save(data, name) {
	const text = JSON.stringify(data).replace(
		/[<>&\u007f-\uffff]/g,
		(sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
	);
	const copy = document.documentElement.cloneNode(true);
	copy.querySelector("#data").textContent = text;
	copy.querySelector("#app").replaceChildren();
	copy.querySelector("title").textContent = `${data.title}: ${data.answer}`;
	for (const node of copy.querySelectorAll(".toast, .measure, dialog")) node.remove();
	const html = `<!doctype html>\n${copy.outerHTML}\n`;
	const link = element("a", { download: `${name.replace(/\.\w+$/, "")}.html` });
	link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), TOAST_MS);
}
