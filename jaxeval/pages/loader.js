// Starts the script of a page whose text is packed, as that of large pages is. Its hash is in the page's policy.
(async () => {
	const bytes = Uint8Array.from(atob(document.getElementById("code").textContent), (sign) => sign.charCodeAt(0));
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	const script = document.createElement("script");
	script.textContent = await new Response(stream).text();
	document.body.append(script);
})();
