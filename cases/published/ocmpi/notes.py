"""What the ocMPI paper states beside its numbers, and what it leaves open."""

from __future__ import annotations

STATEMENTS = (
    "About 75,000 initialisations per second with 4 cores at 200 MHz, 20,000 with 16: 200e6 / 2,613 = 76,540 "
    "and 200e6 / 10,331 = 19,359, so these follow from the cycles.",
    "Less than 30,000 barriers per second with 9 cores: 200e6 / 6,935 = 28,839, also follows.",
    "256 words take about 4 and 7 times as long as one: the cycles given say 8,425 / 930 = 9.1 and "
    "15,945 / 2,595 = 6.1, so the text contradicts itself; we take the cycles.",
    "A ping-pong of 256 words (15,945) takes less than two messages one way (2 x 8,425 = 16,850), one of one "
    "word (2,595) takes more (2 x 930 = 1,860). So something is added for each ping-pong, and something is "
    "saved for each word of it: we take a notification that the peer is ready, and that what comes back "
    "is in the cache of the process that has just received it.",
    "A circuit's latency is fixed once it is open: exactly so in the simulation, whatever the others send.",
    "Speed-up of prioritised tasks 'up to about 15 %' in the introduction is the mean of Fig. 9, but Fig. 10 "
    "goes up to 20 %.",
)

ASSUMPTIONS = (
    "Routing goes along the rows first. The other way round, priorities would slow ARM_4, ARM_8 and "
    "ARM_12 by very different amounts, not all by 65-70 %.",
    "Round robin among equal priorities, with and without quality of service; the paper says that 'only "
    "fixed priorities' act in its absence, and not which input is first.",
    "One virtual channel, buffers of 8 flits, a switch and its wire in two cycles; a store is a packet of "
    "four 32-bit flits, of which one is the word. Of 3 to 5 flits and buffers of 5 to 16 only four flits "
    "with 5 or 8 fit all three figures with 256 words (table above), so these two are in effect calibrated "
    "as well; three flits come near with a thousand words.",
    "A core stores word by word, and stores the next word when the response to the one before is back. "
    "Responses have a network of their own and meet no traffic.",
    "Software for each message and each word is the same at both ends.",
    "A notification (barrier, initialisation, ready) is one store to a synchronisation module, with the "
    "software of a message and no header. That of an initialisation has a cost of its own.",
    "What is sent is read from the tile's memory, 17 cycles for each line of four words; what comes back "
    "in a ping-pong is in the cache. All other caching is left out.",
    "Buffer memories take what arrives at the speed of their link and have room for everything.",
    "Fig. 9: all processes begin at the same time and send 10 words each (calibrated on 65-70 %).",
    "Fig. 10: one word is broadcast, then 256 words are computed on, 4 cycles each (calibrated on 34 %), "
    "and sent. The paper gives neither data sizes nor times.",
    "Fig. 11: ARM_14 sends 256 words, and so do all others, to ARM_0 (nothing calibrated).",
)
