"""How tables show themselves: as text, as HTML, and how numbers and names become cells of both."""
