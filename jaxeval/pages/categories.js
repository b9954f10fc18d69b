// Every model on every board: ranks or ratings side by side.

const MOST_CATEGORIES = 40;
const SHADES = 7;
/** How much of the colour of bands the shades have, from the first on; the last has none. */
const SHARES = [95, 75, 57, 42, 28, 15];

const categoriesPanel = {
	id: "categories",
	title: "Categories",
	available: (data) => data.boards.filter(({ without }) => without === undefined).length > 1,
	state: () => ({ ...filterState(), cells: "rank", by: "" }),
	render(root, store, data) {
		const place = scrolling(`${data.competitor.heads} by category`);
		const told = element("p", { class: "told" });
		const kinds = choice({
			label: "Cells",
			options: [
				{ id: "rank", title: "Rank ranges" },
				{ id: "rating", title: "Ratings" },
			],
			choose: (cells) => store.set({ cells }),
		});
		let table = { columns: [], rows: [] };
		const buttons = copyButtons(() => ({ ...table, title: `${data.title}: ${store.get().cells}s by category` }));
		root.append(foldedFields(store, data, [kinds.node], [buttons]), told, place);
		const draw = () => {
			const state = store.get();
			const cells = state.cells === "rating" ? "rating" : "rank";
			kinds.show(cells);
			const all = data.boards
				.filter(({ without }) => without === undefined)
				.map((board) => boardOf({ ...state, board: board.id }, data));
			const boards = all.slice(0, MOST_CATEGORIES);
			told.textContent = boards.length < all.length ? `The first ${boards.length} of ${all.length} boards.` : "";
			table = matrix(boards, cells, state, data);
			table.rows = sorted(table.rows, table.columns, state.by);
			const press = (by) => store.set({ by });
			place.replaceChildren(dataTable({ label: `${cells}s by category`, ...table, sort: state.by, press }));
		};
		store.subscribe(draw);
		draw();
	},
};

/**
 * A row for each model and a column for each board. Cells show the ranks that the votes leave open; they are shaded by the
 * rank of the model on the board, and fade the more ranks are open.
 */
function matrix(boards, cells, state, data) {
	const ofBoard = boards.map((board) => new Map(shownRows(board, state, data).map((row) => [row.model, row])));
	const models = [...new Set(ofBoard.flatMap((rows) => [...rows.keys()]))];
	const columns = boards.map((board, k) => {
		const at = (model) => ofBoard[k].get(model)?.[cells];
		const range = (row) => (row?.rank === undefined ? "" : rankSet(row) || count(row.rank));
		const text = (model) => (cells === "rank" ? range(ofBoard[k].get(model)) : fixed(at(model)));
		const places = Math.max(...board.rows.map(({ rank }) => rank ?? 0), 1);
		const shade = (model) => {
			const row = ofBoard[k].get(model);
			if (row?.rank === undefined) return {};
			const open = row.best === undefined ? 0 : (row.worst - row.best) / places;
			const place = Math.min(Math.floor(((row.rank - 1) / places) * SHADES), SHADES - 1);
			const share = SHARES[place + Math.floor(open * SHADES)];
			if (open > 0.5) return { class: "shade open" };
			return share === undefined ? {} : { class: "shade shaded", "--share": `${share}%` };
		};
		const cell = (model) => element("span", { class: "shade", ...shade(model) }, text(model));
		return {
			id: board.id,
			title: board.title,
			number: true,
			kind: "matrix",
			largestFirst: cells === "rating",
			value: (model) => at(model) ?? null,
			text,
			cell,
		};
	});
	return { columns: [modelColumn(data, (model) => model), ...columns], rows: models };
}
