// Numbers as readers see them.

const MINUS = "\u2212";

/** A number with so many decimals and a true minus sign; empty if it is missing. */
function fixed(x, decimals = 1) {
	if (!Number.isFinite(x)) return x === Infinity ? "\u221e" : x === -Infinity ? `${MINUS}\u221e` : "";
	const text = Math.abs(x).toFixed(decimals);
	return x < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** A number with its sign. */
function signed(x, decimals = 1) {
	const text = fixed(x, decimals);
	return text === "" || text.startsWith(MINUS) || Number(text) === 0 ? text : `+${text}`;
}

/** A whole number with commas; empty if it is missing. */
function count(n) {
	return Number.isFinite(n) ? n.toLocaleString("en-US", { maximumFractionDigits: 6 }) : "";
}

/** "1 model", "2 models". */
function counted(n, one, many = `${one}s`) {
	return `${count(n)} ${n === 1 ? one : many}`;
}

/** "1 model", "2 players": so many of what the boards of the page rate. */
function countedRated(n, data) {
	return counted(n, data.competitor.one, data.competitor.many);
}

/** A share in percent. */
function percent(share) {
	if (!Number.isFinite(share)) return "";
	const text = (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0);
	return `${text}%`;
}

/** A number of the data: "inf" and "-inf" are infinite, missing values are NaN. */
function number(value) {
	if (value === "inf") return Infinity;
	if (value === "-inf") return -Infinity;
	return typeof value === "number" ? value : NaN;
}
