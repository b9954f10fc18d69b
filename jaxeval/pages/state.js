// All that the reader has chosen is in the address: a link brings somebody else to the same view.

const LONGEST_TEXT = 1_000; // two names and more
const MOST_ENTRIES = 500;

/**
 * A store of named values. The address (#name=value&...) holds those that differ from `initial`.
 *
 * A value has the type of its initial value: text, number, true or false, or a list of texts. Other names and other types
 * in an address are ignored: addresses are input, and may be older than this page.
 *
 * get(): the values. set(patch): changes some. subscribe(tell): calls tell(values, changed), with a Set of names.
 */
function createStore(initial) {
	const listeners = [];
	let state = read();

	function read() {
		const given = new URLSearchParams(window.location.hash.slice(1));
		const found = {};
		for (const [name, usual] of Object.entries(initial)) found[name] = parsed(given.getAll(name), usual);
		return found;
	}

	function update(next) {
		const changed = new Set(Object.keys(initial).filter((name) => !same(state[name], next[name])));
		state = next;
		if (changed.size > 0) for (const tell of listeners) tell(state, changed);
	}

	window.addEventListener("hashchange", () => update(read()));

	return {
		get: () => state,
		set(patch) {
			const next = { ...state };
			for (const [name, value] of Object.entries(patch)) {
				if (!(name in initial)) throw new Error(`the store has no ${name}`);
				next[name] = value;
			}
			const hash = hashOf(next, initial);
			try {
				window.history.replaceState(null, "", hash === "" ? window.location.pathname + window.location.search : hash);
			} catch {
				// A page within another page may have no address of its own.
			}
			update(next);
		},
		subscribe(tell) {
			listeners.push(tell);
		},
	};
}

/** The values that differ from the initial ones, as the end of an address. */
function hashOf(state, initial) {
	const given = new URLSearchParams();
	for (const [name, usual] of Object.entries(initial)) {
		if (same(state[name], usual)) continue;
		if (Array.isArray(usual)) for (const entry of state[name].length ? state[name] : [""]) given.append(name, entry);
		else given.append(name, typeof usual === "boolean" ? (state[name] ? "1" : "0") : state[name]);
	}
	const text = given.toString();
	return text === "" ? "" : `#${text.replace(/%2C/g, ",").replace(/%3A/g, ":").replace(/%2F/g, "/")}`;
}

function parsed(texts, usual) {
	if (texts.length === 0) return usual;
	if (Array.isArray(usual))
		return [...new Set(texts)].filter((text) => text !== "" && text.length <= LONGEST_TEXT).slice(0, MOST_ENTRIES);
	const text = texts[0];
	if (typeof usual === "boolean") return text === "1" ? true : text === "0" ? false : usual;
	if (typeof usual === "number") return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : usual;
	return text.length <= LONGEST_TEXT ? text : usual;
}

function same(a, b) {
	return Array.isArray(a) ? a.length === b.length && a.every((entry, k) => entry === b[k]) : a === b;
}
