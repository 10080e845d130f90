// Drives Ramulator 1 (DDR4, its table of speeds replaced) with random requests.
// Arguments: those of Settings.
#include <algorithm>
#include <cmath>

#include "Config.h"
#include "Controller.h"
#include "DDR4.h"
#include "DRAM.h"
#include "dram_arrivals.h"

namespace ramulator { bool warmup_complete = true; }
using namespace ramulator;

int main(int, char** argv) {
    const Settings s(argv + 1);
    Arrivals arrivals(s);
    DDR4 spec("DDR4_8Gb_x8", "DDR4_3200");
    spec.set_rank_number(s.ranks);
    if (!s.refresh) spec.speed_entry.nREFI = 2000000000;
    auto* channel = new DRAM<DDR4>(&spec, DDR4::Level::Channel);
    channel->id = 0;
    channel->regStats("");
    Config config;
    config.add("record_cmd_trace", "off");
    config.add("print_cmd_trace", "off");
    config.set_core_num(1);
    Controller<DDR4> controller(config, channel);
    controller.rowpolicy->type = s.closed ? RowPolicy<DDR4>::Type::ClosedAP : RowPolicy<DDR4>::Type::Opened;
    controller.scheduler->type = Scheduler<DDR4>::Type::FRFCFS;
    long clock = 0, number = 0, pending = 0;
    const std::clock_t start = std::clock();
    while (!arrivals.finished() || pending) {
        arrivals.until(clock);
        while (!arrivals.waiting.empty()) {
            const Wanted& w = arrivals.waiting.front();
            std::vector<int> place = {0, w.rank, w.group, w.bank, w.row, w.column};
            const long mine = number, since = w.arrival;
            Request request(place, w.write ? Request::Type::WRITE : Request::Type::READ, [&, mine, since](Request&) {
                arrivals.done(mine, clock - since);
                pending--;
            });
            request.addr = (((((long)w.row * 4 + w.rank) * 4 + w.bank) * 4 + w.group) * 128 + w.column);
            if (!controller.enqueue(request)) break;
            if (!w.write) pending++;
            number++;
            arrivals.waiting.pop_front();
        }
        controller.tick();
        clock++;
    }
    arrivals.print(clock, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
}
