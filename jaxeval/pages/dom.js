// Only this file makes elements. Text is set as text and attributes as attributes, so that no name becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element of HTML. Attributes `onclick` and the like are listeners, `--share` and the like are properties of its style;
 * false and null leave an attribute out.
 */
function element(tag, attributes = {}, ...children) {
	return filled(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
function drawn(tag, attributes = {}, ...children) {
	return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name.startsWith("--")) node.style.setProperty(name, value);
		else if (value === true) node.setAttribute(name, "");
		else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
	}
	node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
	return node;
}

/** Whether the page is "light" or "dark": as the reader chose, or as the system has it. */
function themeNow() {
	const isDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
	return document.documentElement.dataset.theme ?? (isDark ? "dark" : "light");
}

/** The k-th colour of lines. */
function ownColour(k) {
	return { "--own": `var(--own-${k})` };
}

/** A name in its own direction of writing. */
function named(text) {
	return element("bdi", { class: "name" }, text);
}

/** A link to an address of the web, by its host or a `name`; other text stays text, whatever it looks like. */
function linked(address, name) {
	let url;
	try {
		url = new URL(address);
	} catch {
		return named(name ?? address);
	}
	if (url.protocol !== "https:" && url.protocol !== "http:") return named(name ?? address);
	const shown = name === undefined ? url.host : named(name);
	return element("a", { href: url.href, rel: "noopener noreferrer", title: address }, shown);
}

/** A button with words on it. */
function button(text, press, attributes = {}) {
	return element("button", { type: "button", onclick: press, ...attributes }, text);
}

/** A field with its label. */
function labelled(text, field) {
	return element("label", { class: "field" }, element("span", {}, text), field);
}

/** A list to choose from, of `[value, text]`. */
function selection(options, attributes = {}) {
	return element("select", attributes, ...options.map(([value, text]) => element("option", { value }, text)));
}

/** A box to tick, with its words. */
function ticked(box, words) {
	return element("label", { class: "switch" }, box, element("bdi", {}, words));
}

/** A place for a table, which slides where it is too wide. */
function scrolling(label, ...children) {
	return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);
}

const MOST_TABS = 12;

/**
 * A choice among options `{id, title}`: tabs with arrow keys, or a list if there are many.
 * `show(id)` marks the chosen option. `controls`: the id of the element whose content changes.
 */
function choice({ label, options, choose, controls }) {
	if (options.length > MOST_TABS) {
		const list = selection(
			options.map(({ id, title }) => [id, title]),
			{ onchange: () => choose(list.value) },
		);
		return {
			node: labelled(label, list),
			show(id) {
				list.value = id;
			},
		};
	}
	const tabs = options.map(({ id, title }) =>
		button(element("bdi", {}, title), () => choose(id), { role: "tab", "data-id": id, "aria-controls": controls }),
	);
	const node = element("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: walk }, ...tabs);
	function walk(event) {
		const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
		if (step === undefined) return;
		event.preventDefault();
		const now = tabs.indexOf(document.activeElement) + step;
		const next = Math.abs(step) === 1 ? (now + tabs.length) % tabs.length : step < 0 ? 0 : tabs.length - 1;
		tabs[next].focus();
		choose(options[next].id);
	}
	return {
		node,
		show(id) {
			for (const tab of tabs) {
				const own = tab.dataset.id === id;
				tab.setAttribute("aria-selected", own);
				tab.tabIndex = own ? 0 : -1;
			}
			if (!tabs.some(({ tabIndex }) => tabIndex === 0)) tabs[0].tabIndex = 0; // the keyboard finds them
		},
	};
}
