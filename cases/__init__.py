"""The joint case, its studies and reports, and the command line: the floor that joins the other packages."""

# A package of qmodels-toolkit: `qmodels.beside` looks for this name.

import qmodels.beside

qmodels.beside.package("cases")
