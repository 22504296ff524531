"""What the page's findings claim of the results: data, comparison, threshold. `page.md` has the sentences.

A claim returns whether it holds and the figures of its sentence. KeyError: the results do not say.
"""
