// Numbers as document.py packs them: rows of boards, their histories, and offsets of votes.

const NOT_NUMBERS = [undefined, "inf", "-inf"];

/** The bytes of a text of base64 of gzip. */
async function inflated(text) {
	const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Columns of whole numbers; all have one length, or `lengths`. */
async function unpackNumbers({ bytes: sizes, text }, lengths) {
	const content = await inflated(text);
	const length = content.length / sizes.reduce((sum, size) => sum + size, 0);
	let at = 0;
	return sizes.map((size, c) => {
		const column = new Float64Array(lengths?.[c] ?? length);
		for (let place = 0; place < size; place++) {
			const power = 256 ** place; // a product, as shifts end at 32 bits
			for (let k = 0; k < column.length; k++) column[k] += content[at++] * power;
		}
		return column;
	});
}

/** Values of codes: numbers, "inf", "-inf", or undefined where there is none. */
function decoded(codes, steps) {
	let last = 0;
	return Array.from(codes, (code) => {
		if (code < NOT_NUMBERS.length) return NOT_NUMBERS[code];
		const own = code - NOT_NUMBERS.length;
		const value = own % 2 ? -(own + 1) / 2 : own / 2;
		if (steps) last += value;
		return steps ? last : value;
	});
}

/** A whole number of parts of ten, as a number; what is told from the rating is added to it or taken off. */
function scaled(value, decimals, sign, rating) {
	if (typeof value !== "number") return value;
	const power = 10 ** decimals;
	return sign === 0 ? value / power : Math.round(rating * power + sign * value) / power;
}

const FROM_RATING = { lower: -1, upper: 1 };

/** Give boards their rows, histories and lists of categories, and the page its models. Pages of the browser have them. */
async function unpack(data) {
	if (typeof data.models === "string") data.models = JSON.parse(new TextDecoder().decode(await inflated(data.models)));
	if (!data.rows) return;
	const columns = await unpackNumbers(data.rows);
	const rows = Array.from(columns[0] ?? [], () => ({}));
	data.rows.columns.forEach(({ key, part, decimals, steps }, c) => {
		const sign = part === null ? (FROM_RATING[key] ?? 0) : part === "was" && key === "rating" ? -1 : 0;
		decoded(columns[c], steps).forEach((value, k) => {
			if (value === undefined) return;
			const row = rows[k];
			const own = part === null ? row : (row[part] ??= {});
			own[key] = key === "flags" ? data.rows.flags[value] : scaled(value, decimals, sign, row.rating);
		});
	});
	let at = 0;
	for (const board of data.boards) {
		const n = board.rows;
		board.rows = rows.slice(at, at + n);
		at += n;
		if (board.pool) board.pool.ids = data.pools[board.pool.ids];
		for (const piece of ["pairs", "levers"]) // of another board with the same votes
			if (typeof board[piece] === "string") board[piece] = data.boards.find(({ id }) => id === board[piece])[piece];
		if (board.history) board.history = await unpackHistory(board.history);
	}
}

async function unpackHistory({ dates, keys, decimals, n, ...packed }) {
	const lengths = [n, ...keys.map(() => n * dates.length)];
	const [models, ...columns] = (await unpackNumbers(packed, lengths)).map((codes) => decoded(codes, true));
	const found = Object.fromEntries(models.map((model) => [model, {}]));
	keys.forEach((key, c) => {
		models.forEach((model, k) => {
			found[model][key] = dates.map((_, day) => {
				const value = columns[c][k * dates.length + day];
				if (value === undefined || key === "rank") return value ?? null;
				return scaled(value, decimals, FROM_RATING[key] ?? 0, found[model].rating?.[day]);
			});
		});
	});
	return { dates, models: found };
}
