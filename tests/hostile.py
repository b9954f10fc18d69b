"""Names that other people might give their models to harm whoever reads a table."""

FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-x", "@y", "\ttab", "\rcr", "\nlf", "'=q", "''-z", "\uff1dwide"]
MARKUP = [
    "<script>alert(1)</script>", "</td></tr></table>", "&lt;b&gt;", "[link](http://x.example) ![i](y)",
    "`code` **bold** _it_ ~~no~~", "a|b\\|c\\", "www.x.example and https://y.example",
    "\\input{/etc/passwd} $x^2$ 100% #1 {a} a_b ~", "[3cm] * -- --- `` '' ,, << >> ?` !`", "{{ 7 * 7 }} {% raw %}",
    "[bold red]rich[/]", "null", "NaN", "- list: {yaml: 1}",
]  # fmt: skip
CONTROLS = [
    "e\x1b]0;title\x07", "c1\x9b31m", "back\x08\x08", "bidi\u202eoverride", "cr\rname", "two\nlines", "z\u200bw",
]  # fmt: skip
SCRIPTS = ["עברית", "نموذج", "模型", "é", "🤖"]
LONG = ["n" * 300, "word " * 60 + "end"]
NAMES = [*FORMULAS, *MARKUP, *CONTROLS, *SCRIPTS, *LONG, "a,b", 'a"b', "", " space ", "plain"]
