"""
Tails of laws
=============

Service times with the same mean of 1 and how many are longer than t: laws differ where percentiles are read.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

laws = {
    "Erlang, 4 phases": qm.laws.Erlang(mean=1.0, phases=4),
    "exponential": qm.laws.Exponential(mean=1.0),
    "log-normal, SCV 4": qm.laws.LogNormal(mean=1.0, scv=4.0),
    "Pareto, shape 2.5": qm.laws.Pareto(mean=1.0, shape=2.5),
}
t = np.linspace(0.0, 15.0, 400)

fig, ax = plt.subplots()
for name, law in laws.items():
    ax.semilogy(t, qm.laws.formulas(law).tail(t), label=name)
ax.set(xlabel="t", ylabel="part that is longer than t", ylim=(1e-5, 1.2))
ax.legend()
plt.show()
