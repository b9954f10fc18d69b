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
			...(data.digest
				? [element("p", {}, "SHA-256 of the data of this page: ", element("code", {}, data.digest))]
				: []),
		);
		if (settings.length === 0) return;
		root.append(
			element(
				"details",
				{},
				element("summary", {}, `All settings (${settings.length / 2})`),
				element("dl", { class: "settings" }, ...settings),
			),
		);
	},
};
