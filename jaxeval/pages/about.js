// How the page was made: in sentences, then settings, versions and digest for those who want them.

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
			element("p", {}, "SHA-256 of the data of this page: ", element("code", {}, data.digest)),
			element(
				"details",
				{},
				element("summary", {}, `All settings (${Object.keys(data.settings ?? {}).length})`),
				element("dl", { class: "settings" }, ...settings),
			),
		);
	},
};
