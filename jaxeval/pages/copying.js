// Tables to copy: CSV, Markdown and LaTeX as jaxeval.show writes them, with every name as plain text.
// `WRITTEN`, their signs, is what document.py takes from there.
const FORMULA = new RegExp(`^${WRITTEN.formula}`);
const MARKDOWN = new RegExp(WRITTEN.markdown, "g");
const LATEX_SIGN = new RegExp(WRITTEN.latex, "g");
const LATEX_MATHS = { "\u2212": "$-$", "\u221e": "$\\infty$", "\u2013": "--" };

/** Text that a spreadsheet would run as a formula gets an apostrophe in front; numbers stay numbers. */
function csvCell(value) {
	if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
	const safe = FORMULA.test(value) ? `'${value}` : value;
	return /[\x22,\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function markdownText(text) {
	return text.replace(MARKDOWN, "\\$1");
}

function latexText(text) {
	return text
		.replace(LATEX_SIGN, (sign) => WRITTEN.latex_signs[sign])
		.replace(/[\u2212\u221e\u2013]/g, (sign) => LATEX_MATHS[sign]);
}

/** CSV of `columns` of `dataTable` and rows in the order shown. CSV has full numbers; other formats have the texts shown. */
function asCsv(columns, rows) {
	const line = (cells) => `${cells.map(csvCell).join(",")}\r\n`;
	const cells = (row) =>
		columns.flatMap(({ copied, value, text }) =>
			copied ? copied.map((own) => own.value(row)) : [value ? (value(row) ?? "") : text(row)],
		);
	const heads = columns.flatMap(({ copied, title }) => (copied ? copied.map((own) => own.title) : [title]));
	return line(heads) + rows.map((row) => line(cells(row))).join("");
}

function asMarkdown(columns, rows) {
	const line = (cells) => `| ${cells.map(markdownText).join(" | ")} |\n`;
	const kinds = `|${columns.map(({ number: right }) => (right ? "---:" : "---")).join("|")}|\n`;
	return (
		line(columns.map(({ title }) => title)) +
		kinds +
		rows.map((row) => line(columns.map(({ text }) => text(row)))).join("")
	);
}

function asLatex(columns, rows, title) {
	const line = (cells) => `${cells.map(latexText).join(" & ")} \\\\\n`;
	const kinds = columns.map(({ number: right }) => (right ? "r" : "l")).join("");
	const body = rows.map((row) => line(columns.map(({ text }) => text(row)))).join("");
	return [
		"% \\usepackage{booktabs}\n\\begin{table}\n",
		`\\caption{${latexText(title)}}\n\\begin{tabular}{${kinds}}\n\\toprule\n`,
		`${line(columns.map((column) => column.title))}\\midrule\n${body}\\bottomrule\n\\end{tabular}\n\\end{table}\n`,
	].join("");
}

const FORMATS = { CSV: asCsv, Markdown: asMarkdown, LaTeX: asLatex };

/** Buttons that copy a table: `shown()` gives `{columns, rows, title}`. */
function copyButtons(shown) {
	const buttons = Object.entries(FORMATS).map(([name, write]) =>
		button(name, () => {
			const { columns, rows, title } = shown();
			copyText(
				write(
					columns.filter((column) => column.copy !== false),
					rows,
					title,
				),
				`The table as ${name}`,
			);
		}),
	);
	return element(
		"div",
		{ class: "copy", role: "group", "aria-label": "Copy the table" },
		element("span", {}, "Copy"),
		...buttons,
	);
}

/** Copy text and say so; readers whose browser does not allow to write to the clipboard get it to select. */
function copyText(text, title) {
	const byHand = () => {
		const field = element("textarea", { readonly: true, rows: 14, "aria-label": title, spellcheck: "false" });
		field.value = text;
		const dialog = element(
			"dialog",
			{ onclose: () => dialog.remove(), "aria-label": title },
			element("h2", {}, title),
			field,
			element("p", {}, "Select all and copy: Ctrl+C, or \u2318C."),
			button("Close", () => dialog.close()),
		);
		document.body.append(dialog);
		dialog.showModal();
		field.select();
	};
	if (navigator.clipboard === undefined) byHand();
	else navigator.clipboard.writeText(text).then(() => toast(`Copied: ${title.toLowerCase()}.`), byHand);
}

const TOAST_MS = 2_500;

/** Say something in a corner for a moment. */
function toast(text) {
	const node = element("p", { class: "toast", role: "status" }, text);
	document.body.append(node);
	setTimeout(() => node.remove(), TOAST_MS);
}
