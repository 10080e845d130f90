"""
Interleaving steps
==================

Which of four channels has each segment: with step 1 a packet is on all of them, with step 8 mostly on one.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

size, steps = 64, (1, 2, 4, 8)
fig, axes = plt.subplots(len(steps), figsize=(6.4, 4.4), sharex=True)
for ax, step in zip(axes, steps, strict=True):
    region = qm.memory.InterleavedRegion(
        start_bytes=0, size_bytes=64 * size, channels=(0, 1, 2, 3), step_bytes=step * size
    )
    memory = qm.memory.MemoryMap(regions=(region,))
    channel = np.array([memory.locate(address * size)[1] for address in range(32)])
    ax.imshow(channel[None], aspect="auto", cmap="Set2", vmin=0, vmax=7)
    for at, number in enumerate(channel):
        ax.text(at, 0, str(number), ha="center", va="center", fontsize=8)
    ax.set(yticks=[], ylabel=f"step {step}")
    ax.grid(False)
axes[-1].set_xlabel("segment (64 bytes); the number is its channel")
plt.show()
