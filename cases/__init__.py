"""The joint case, its studies and reports, and the command line: the floor that joins the other packages."""

# A package of qmodels-toolkit: `qmodels.beside` looks for this name.

from qmodels.beside import package

package("cases")
