// Poisson arrivals of requests to random banks, and what is kept of their latencies.
// An arrival at a real time belongs to the cycle in which it falls; the waiting time of such
// arrivals is that of the Poisson process itself.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <random>
#include <string>
#include <vector>

struct Settings {
    int ranks, groups, banks;
    bool closed, refresh;
    double rate, hits, writes;
    long requests;
    unsigned seed;
    Settings(char** argv)
        : ranks(atoi(argv[0])), groups(atoi(argv[1])), banks(atoi(argv[2])), closed(argv[3] == std::string("closed")),
          refresh(atoi(argv[4])), rate(atof(argv[5])), hits(atof(argv[6])), writes(atof(argv[7])),
          requests(atol(argv[8])), seed(atoi(argv[9])) {}
};

struct Wanted {
    long arrival;
    int rank, group, bank, row, column;
    bool write;
};

class Arrivals {
    const Settings s;
    std::mt19937_64 random;
    std::vector<int> last_row;
    double next;
    double uniform() { return std::uniform_real_distribution<double>(0, 1)(random); }

  public:
    std::deque<Wanted> waiting;
    std::vector<double> latencies;
    long made = 0, warm_up;
    explicit Arrivals(const Settings& settings)
        : s(settings), random(settings.seed), last_row(settings.ranks * settings.groups * settings.banks, 0),
          next(0), warm_up(settings.requests / 10) {}

    void until(long cycle) {
        while (next < cycle + 1.0 && made < s.requests + warm_up) {
            const int place = random() % last_row.size();
            if (uniform() >= s.hits) last_row[place] = random() % 65536;
            waiting.push_back({cycle, place / (s.groups * s.banks), place / s.banks % s.groups, place % s.banks,
                               last_row[place], static_cast<int>(random() % 128), uniform() < s.writes});
            made++;
            next += -std::log1p(-uniform()) / s.rate;
        }
    }
    void done(long number, long latency) {
        if (number >= warm_up) latencies.push_back(latency);
    }
    bool finished() const { return made == s.requests + warm_up && waiting.empty(); }

    void print(long cycles, double seconds) {
        double sum = 0;
        std::vector<double> batch(20, 0.0);
        const size_t size = latencies.size() / batch.size();
        for (size_t i = 0; i < latencies.size(); i++) {
            sum += latencies[i];
            if (i / size < batch.size()) batch[i / size] += latencies[i] / size;
        }
        const double mean = sum / latencies.size();
        double spread = 0;
        for (double b : batch) spread += (b - mean) * (b - mean);
        std::nth_element(latencies.begin(), latencies.begin() + latencies.size() * 99 / 100, latencies.end());
        printf("%.4f,%.4f,%.0f,%ld,%.4f\n", mean, std::sqrt(spread / (batch.size() * (batch.size() - 1))),
               latencies[latencies.size() * 99 / 100], cycles, seconds);
    }
};
