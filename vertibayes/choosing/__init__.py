"""Choosers: a learner that asks which candidate is best does not know who scores, or how.

`TableChooser` counts the tables of all candidates and scores them.
`vertibayes.choosing.secret.SecretChooser` asks a federation, which reveals the winners alone; this
package does not import it, so that `TableChooser` loads no cryptography.
"""

from vertibayes.choosing.chooser import Chooser, TableChooser, chooser_of, follow

__all__ = ["Chooser", "TableChooser", "chooser_of", "follow"]
