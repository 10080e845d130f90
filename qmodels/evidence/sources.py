"""The bibliography: sources that docstrings name by key, see `qmodels.evidence.described`.

A source says whom, what and where; the docstring that names it adds the chapter.

allen1990: A. O. Allen, *Probability, Statistics, and Queueing Theory with Computer Science Applications*,
    2nd edition, Academic Press, 1990
baskett1975: F. Baskett, K. M. Chandy, R. R. Muntz, F. G. Palacios, "Open, closed, and mixed networks of
    queues with different classes of customers", *Journal of the ACM* 22(2), 1975, pp. 248-260
blondia1989: C. Blondia, "The N/G/1 finite capacity queue", Stochastic Models 5 (1989), 273-294
bobbio2005: A. Bobbio, A. Horvath and M. Telek, "Matching three moments with minimal acyclic phase type
    distributions", Stochastic Models 21 (2005), 303-326
boxma1987: O. J. Boxma and W. P. Groenendijk, "Pseudo-conservation laws in cyclic-service systems", Journal
    of Applied Probability 24, 1987, pp. 949-964
boxma1987b: O. J. Boxma and B. Meister, "Waiting-time approximations for cyclic-service systems with
    switch-over times", Performance Evaluation 7, 1987, pp. 299-308
bryant1984: R. M. Bryant, A. E. Krzesinski, M. S. Lakshmi, K. M. Chandy, "The MVA priority approximation",
    *ACM Transactions on Computer Systems* 2(4), 1984, pp. 335-359
buzen1973: J. P. Buzen, "Computational algorithms for closed queueing networks with exponential servers",
    *Communications of the ACM* 16(9), 1973, pp. 527-531
casale2008: G. Casale, R. R. Muntz, G. Serazzi, "Geometric bounds: a noniterative analysis technique for
    closed queueing networks", *IEEE Transactions on Computers* 57(6), 2008, pp. 780-794
chandy1975: K. M. Chandy, U. Herzog, L. Woo, "Parametric analysis of queuing networks", *IBM Journal of
    Research and Development* 19(1), 1975, pp. 36-42
chandy1982: K. M. Chandy, D. Neuse, "Linearizer: a heuristic algorithm for queueing network models of
    computing systems", *Communications of the ACM* 25(2), 1982, pp. 126-134
cobham1954: A. Cobham, "Priority assignment in waiting line problems", Operations Research 2, 1954, pp.
    70-76
coffman1970: E. G. Coffman, R. R. Muntz and H. Trotter, "Waiting time distributions for processor-sharing
    systems", Journal of the ACM 17, 1970, pp. 123-130
cooper1981: R. B. Cooper, *Introduction to Queueing Theory*, 2nd edition, North Holland, 1981
cumani1982: A. Cumani, "On the canonical representation of homogeneous Markov processes modelling
    failure-time distributions", Microelectronics Reliability 22 (1982), 583-602
daley1977: D. J. Daley, "Inequalities for moments of tails of random variables, with a queueing
    application", Zeitschrift fuer Wahrscheinlichkeitstheorie 41, 1977, pp. 139-143
dallery1993: Y. Dallery, Y. Frein, "On decomposition methods for tandem queueing networks with blocking",
    *Operations Research* 41(2), 1993, pp. 386-399
fayolle1980: G. Fayolle, I. Mitrani and R. Iasnogorodski, "Sharing a processor among many job classes",
    Journal of the ACM 27, 1980, pp. 519-532
flatto1984: L. Flatto, S. Hahn, "Two parallel queues created by arrivals with two demands I", *SIAM Journal
    on Applied Mathematics* 44(5), 1984, pp. 1041-1053
franx2001: G. J. Franx, "A simple solution for the M/D/c waiting time distribution", Operations Research
    Letters 29, 2001, pp. 221-229
goodman1984: J. B. Goodman, W. A. Massey, "The non-ergodic Jackson network", *Journal of Applied
    Probability* 21(4), 1984, pp. 860-869
gordon1967: W. J. Gordon, G. F. Newell, "Closed queuing systems with exponential servers", *Operations
    Research* 15(2), 1967, pp. 254-265
grassmann1985: W. K. Grassmann, M. I. Taksar and D. P. Heyman, "Regenerative analysis and steady state
    distributions for Markov chains", Operations Research 33 (1985), 1107-1116
gross2008: D. Gross, J. F. Shortle, J. M. Thompson and C. M. Harris, *Fundamentals of Queueing Theory*, 4th
    edition, Wiley, 2008
horton1994: G. Horton and S. T. Leutenegger, "A multi-level solution algorithm for steady-state Markov
    chains", ACM SIGMETRICS 1994, 191-200
hsieh1987: C.-H. Hsieh, S. S. Lam, "Two classes of performance bounds for closed queueing networks",
    *Performance Evaluation* 7(1), 1987, pp. 3-30
hunter1983: J. J. Hunter, *Mathematical Techniques of Applied Probability, Volume 2: Discrete Time Models:
    Techniques and Applications*, Academic Press, 1983
jackson1957: J. R. Jackson, "Networks of waiting lines", *Operations Research* 5(4), 1957, pp. 518-521
jensen1953: A. Jensen, "Markoff chains as an aid in the study of Markoff processes", Skandinavisk
    Aktuarietidskrift 36 (1953), 87-91
karol1987: M. J. Karol, M. G. Hluchyj and S. P. Morgan, "Input versus output queueing on a space-division
    packet switch", IEEE Transactions on Communications 35, 1987, pp. 1347-1356
kaufman1981: J. S. Kaufman, "Blocking in a shared resource environment", IEEE Transactions on Communications
    29, 1981, pp. 1474-1481
kella1985: O. Kella and U. Yechiali, "Waiting times in the non-preemptive priority M/M/c queue",
    Communications in Statistics: Stochastic Models 1, 1985, pp. 257-262
kesten1957: H. Kesten and J. Th. Runnenburg, "Priority in waiting line problems", Proceedings of the
    Koninklijke Nederlandse Akademie van Wetenschappen A 60, 1957
kimura1986: T. Kimura, "A two-moment approximation for the mean waiting time in the GI/G/s queue",
    Management Science 32, 1986, pp. 751-763
kingman1961: J. F. C. Kingman, "The single server queue in heavy traffic", Mathematical Proceedings of the
    Cambridge Philosophical Society 57, 1961, pp. 902-904
kleinrock1975: L. Kleinrock, *Queueing Systems, Volume 1: Theory*, Wiley, 1975
kleinrock1976: L. Kleinrock, *Queueing Systems, Volume 2: Computer Applications*, Wiley, 1976
kraemer1976: W. Kraemer and M. Langenbach-Belz, "Approximate formulae for the delay in the queueing system
    GI/G/1", 8th International Teletraffic Congress, 1976
kurtz1970: T. G. Kurtz, "Solutions of ordinary differential equations as limits of pure jump Markov
    processes", Journal of Applied Probability 7, 1970, pp. 49-58
latouche1993: G. Latouche and V. Ramaswami, "A logarithmic reduction algorithm for quasi-birth-death
    processes", J. Appl. Prob. 30 (1993), 650-674
lazowska1984: E. D. Lazowska, J. Zahorjan, G. S. Graham, K. C. Sevcik, *Quantitative System Performance*,
    Prentice-Hall, 1984
lindley1952: D. V. Lindley, "The theory of queues with a single server", Mathematical Proceedings of the
    Cambridge Philosophical Society 48, 1952
lucantoni1991: D. M. Lucantoni, "New results on the single server queue with a batch Markovian arrival
    process", Stochastic Models 7 (1991), 1-46
mandelbaum2007: A. Mandelbaum and S. Zeltyn, "Service engineering in action: the Palm/Erlang-A queue, with
    applications to call centers", in *Advances in Services Innovations*, Springer, 2007
marchal1976: W. G. Marchal, "An approximate formula for waiting time in single server queues", AIIE
    Transactions 8, 1976, pp. 473-474
marshall1968: K. T. Marshall, "Some inequalities in queuing", Operations Research 16, 1968, pp. 651-665
mitzenmacher2001: M. Mitzenmacher, "The power of two choices in randomized load balancing", IEEE Trans.
    Parallel Distrib. Syst. 12 (2001), 1094-1104
mitzenmacher2001b: M. Mitzenmacher, "Analyses of load stealing models based on differential equations",
    Theory of Computing Systems 34 (2001), 77-98
nelson1988: R. Nelson, A. N. Tantawi, "Approximate analysis of fork/join synchronization in parallel
    queues", *IEEE Transactions on Computers* 37(6), 1988, pp. 739-743
neuts1981: M. F. Neuts, *Matrix-Geometric Solutions in Stochastic Models*, Johns Hopkins University Press,
    1981
palm1957: C. Palm, "Research on telephone traffic carried by full availability groups", Tele 1, 1957
perros1994: H. G. Perros, *Queueing Networks with Blocking*, Oxford University Press, 1994
reiser1979: M. Reiser, "A queueing network analysis of computer communication networks with window flow
    control", *IEEE Transactions on Communications* 27(8), 1979, pp. 1199-1209
reiser1980: M. Reiser, S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks",
    *Journal of the ACM* 27(2), 1980, pp. 313-322
resing1993: J. A. C. Resing, "Polling systems and multitype branching processes", Queueing Systems 13, 1993,
    pp. 409-426
roberts1981: J. W. Roberts, "A service system with heterogeneous user requirements", in *Performance of Data
    Communications Systems and Their Applications*, North Holland, 1981
schrage1966: L. E. Schrage and L. W. Miller, "The queue M/G/1 with the shortest remaining processing time
    discipline", Operations Research 14, 1966, pp. 670-684
schweitzer1979: P. J. Schweitzer, "Approximate analysis of multiclass closed networks of queues",
    *International Conference on Stochastic Control and Optimization*, Amsterdam, 1979
spitzer1956: F. Spitzer, "A combinatorial lemma and its application to probability theory", Transactions of
    the AMS 82, 1956, pp. 323-339
takagi1986: H. Takagi, *Analysis of Polling Systems*, MIT Press, 1986
takagi1991: H. Takagi, *Queueing Analysis, Volume 1: Vacation and Priority Systems*, North Holland, 1991
tijms1994: H. C. Tijms, *Stochastic Models: An Algorithmic Approach*, Wiley, 1994
whitt1983: W. Whitt, "The queueing network analyzer", *The Bell System Technical Journal* 62(9), 1983, pp.
    2779-2815
whitt1993: W. Whitt, "Approximations for the GI/G/m queue", Production and Operations Management 2, 1993,
    pp. 114-161
zahorjan1982: J. Zahorjan, K. C. Sevcik, D. L. Eager, B. Galler, "Balanced job bound analysis of queueing
    networks", *Communications of the ACM* 25(2), 1982, pp. 134-141
"""
