// How the page was made: settings, seed, digest, versions, and warnings that belong to no single board.

const aboutPanel = {
	id: "about",
	title: "How it was made",
	render(root, _store, data) {
		const settings = Object.entries(data.settings ?? {}).flatMap(([name, value]) => [
			element("dt", {}, name),
			element("dd", {}, value === null ? "\u2013" : typeof value === "object" ? JSON.stringify(value) : String(value)),
		]);
		root.append(
			...data.about.map((line) => element("p", {}, line)),
			...warnings(data.warnings),
			element("h2", {}, "Settings"),
			element("dl", { class: "settings" }, ...settings),
			element("h2", {}, "Digest"),
			element("p", {}, "SHA-256 of the data of this page: ", element("code", {}, data.digest)),
		);
	},
};
