/*
 * The page starts here. All script files are joined into one function in "use strict", in the order of document.py. They
 * share what each declares at its top level, and no name becomes global. Nothing is fetched, and nothing is evaluated.
 *
 * The data are the JSON in #data; jaxeval/pages/page.py says what it holds. `data.panels` names the panels of a page.
 *
 * A panel is {id, title, available(data)?, state(data)?, render(root, store, data)}.
 *   available: whether the data have something to show; true by default.
 *   state: names and initial values that the panel adds to the store (see state.js); panels may share names, such as those
 *     of `filterState()`, with the same initial values.
 *   render: called once, when the reader first opens the panel. It fills `root`, and subscribes to the store to draw again.
 * `boardOf(state, data)` is the board that the reader chose; `shownRows(board, state, data)` are its rows that pass the
 * filters.
 */

const PANELS = [
	boardPanel,
	intervalsPanel,
	pricesPanel,
	heatMapsPanel,
	categoriesPanel,
	whatIfPanel,
	historyPanel,
	resultsPanel,
	aboutPanel,
];

async function start() {
	const data = JSON.parse(document.getElementById("data").textContent);
	await unpack(data);
	if (data.blank !== undefined) {
		const place = element("div", {});
		const show = (made) => {
			document.querySelector("h1").textContent = made.title;
			document.querySelector(".facts").textContent = made.facts;
			draw(made, place);
		};
		document.getElementById("app").replaceChildren(dropZone(data, show), place);
		if (data.boards.length > 0) show(data); // a page that a reader saved
	} else draw(data, document.getElementById("app"));
	document.documentElement.dataset.drawn = "";
}

/** Draw the page of data into an element. */
function draw(data, app) {
	const panels = PANELS.filter(({ id, available }) => data.panels.includes(id) && (available?.(data) ?? true));
	const plain = data.boards.find(({ without }) => without === undefined);
	const initial = {
		view: panels[0].id,
		board: plain?.id ?? "",
		style: data.boards[0]?.without !== undefined, // the board given first is shown first
	};
	for (const panel of panels) Object.assign(initial, panel.state?.(data));
	const store = createStore(initial);

	const roots = new Map(
		panels.map(({ id, title }) => [
			id,
			element("section", { class: `panel ${id}`, role: "tabpanel", "aria-label": title, tabindex: -1, hidden: true }),
		]),
	);
	const views = choice({ label: "Views", options: panels, choose: (view) => store.set({ view }) });
	const tools = element(
		"div",
		{ class: "tools" },
		button("Copy link", () => copyText(window.location.href, "A link to this view")),
		button("Embed", () =>
			copyText(embedded(window.location.href, data.title), "HTML that shows this view in another page"),
		),
		themeButton(),
	);
	const wide = window.matchMedia(WIDE).matches;
	const children = [
		...boardChoice(store, data),
		element("nav", { class: "views", "aria-label": "Views" }, views.node, wide && tools),
		...roots.values(),
		!wide && tools,
	];
	app.replaceChildren(...children.filter(Boolean));

	const rendered = new Set();
	const show = () => {
		const chosen = panels.find(({ id }) => id === store.get().view) ?? panels[0];
		for (const [id, root] of roots) root.hidden = id !== chosen.id;
		views.show(chosen.id);
		if (rendered.has(chosen.id)) return;
		rendered.add(chosen.id);
		chosen.render(roots.get(chosen.id), store, data);
	};
	store.subscribe((_, changed) => changed.has("view") && show());
	show();
	const answer = document.querySelector("h1 + p");
	const say = () => {
		if (data.boards.length > 0) answer.textContent = boardOf(store.get(), data).answer ?? data.answer;
	};
	store.subscribe(say);
	say();
}

/** HTML of a frame with a page; the address and the title are text of attributes. */
function embedded(address, title) {
	const signs = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" };
	const attributes = Object.entries({ src: address, title, width: "100%", height: "720", loading: "lazy" });
	const text = attributes.map(([name, value]) => `${name}="${value.replace(/[&"<>]/g, (sign) => signs[sign])}"`);
	return `<iframe ${text.join(" ")}></iframe>`;
}

/** Tabs of boards, and the switch for style control where both were computed. */
function boardChoice(store, data) {
	const boards = data.boards.filter(({ without }) => without === undefined);
	const parts = [];
	const tabs = choice({ label: "Boards", options: boards, choose: (board) => store.set({ board }) });
	if (boards.length > 1) parts.push(tabs.node);
	const style = element("input", { type: "checkbox", onchange: () => store.set({ style: style.checked }) });
	if (boards.some(({ controlled }) => controlled !== undefined)) parts.push(ticked(style, "Style control"));
	const show = () => {
		const own = boards.find(({ id }) => id === store.get().board) ?? boards[0];
		tabs.show(own.id);
		style.checked = store.get().style;
		style.disabled = own.controlled === undefined;
	};
	if (boards.length > 0) {
		store.subscribe(show);
		show();
	}
	return parts.length ? [element("div", { class: "boards" }, ...parts)] : [];
}

/** A button that switches between dark and light, against the system's setting. */
function themeButton() {
	return button("Light / dark", () => {
		document.documentElement.dataset.theme = themeNow() === "dark" ? "light" : "dark";
	});
}

if (typeof document !== "undefined")
	start().catch((error) => {
		document.documentElement.dataset.failed = ""; // the tables for readers without scripts are shown
		throw error;
	});
