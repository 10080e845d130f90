// Drives DRAMsim3 with random requests. Arguments: configuration file, then those of Settings.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "dram_arrivals.h"
#include "dramsim3.h"

int main(int, char** argv) {
    const Settings s(argv + 2);
    Arrivals arrivals(s);
    long clock = 0, number = 0, reads = 0;
    std::unordered_multimap<uint64_t, std::pair<long, long>> pending;
    auto finished = [&](uint64_t address) {
        auto found = pending.find(address);
        if (found == pending.end()) return;
        arrivals.done(found->second.first, clock - found->second.second);
        pending.erase(found);
    };
    auto* memory = dramsim3::GetMemorySystem(argv[1], "/tmp", finished, [](uint64_t) {});
    const std::clock_t start = std::clock();
    while (!arrivals.finished() || !pending.empty()) {
        arrivals.until(clock);
        while (!arrivals.waiting.empty()) {
            const Wanted& w = arrivals.waiting.front();
            const uint64_t address =
                ((((((uint64_t)w.row * s.ranks + w.rank) * s.banks + w.bank) * s.groups + w.group) * 128) + w.column)
                << 6;
            if (!memory->WillAcceptTransaction(address, w.write)) break;
            memory->AddTransaction(address, w.write);
            if (!w.write) {
                pending.insert({address, {number, w.arrival}});
                reads++;
            }
            number++;
            arrivals.waiting.pop_front();
        }
        memory->ClockTick();
        clock++;
    }
    arrivals.print(clock, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}
