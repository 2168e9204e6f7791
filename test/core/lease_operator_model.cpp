// Simulates operators' actions in the lease model, and requests of a wrongly configured server.
#include "lease_world.hpp"

namespace snowflake {

namespace {
constexpr int32_t kMistaken = 99;
}  // namespace

// Simulates a server whose configuration file was copied. The wrongly configured server requests a
// region that belongs to another server.
void World::mistake() {
  LeaseRequest request{};
  request.call = LeaseCall::acquire;
  request.server = kMistaken;
  request.incarnation = draw();
  request.nonce = draw();
  request.clock_ms = now_ + lease_server_off_;
  request.length_ms = request.age_ms = lease_ms_;
  const std::array<int32_t, 1> named{
      static_cast<int32_t>(random_.below(lease_server_.regions.size()))};
  const LeasedRegion before = lease_server_.regions[static_cast<size_t>(named[0])];
  if (before.server == -1) return;
  const bool halted = lease_server_.fleet.halted;
  const LeaseAnswer answer =
      decide(lease_server_.fleet, lease_server_.regions, named, request, request.clock_ms);
  if (answer.status == AnswerStatus::taken) happened("taken by another");
  if (answer.status == AnswerStatus::granted) violate("a mistaken server has a region of another");
  if (lease_server_.fleet.halted && !halted) violate("halted by a mistaken server");
}

void World::operate() {
  const size_t region = random_.below(lease_server_.regions.size());
  switch (random_.below(5)) {
    case 0:
    case 1:
      revoke(lease_server_.regions[region]);
      happened("revoked");
      break;
    case 2:
      if (tame_ || forgetful_) declare_dead(region);
      break;
    default:
      recover();
  }
}

bool World::lives(int64_t incarnation) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const Server& s) {
    return s.up && s.memory.view().incarnation == incarnation;
  });
}

// An operator calls confirm_dead() when no server mints ids in the region and no clock was far
// ahead. In some random schedules, the operator calls confirm_dead() too early, or while a clock is
// far ahead.
void World::declare_dead(size_t region) {
  if (lease_server_moved_ || lease_server_replaced_ || lease_server_.fleet.halted) return;
  const auto number = static_cast<int32_t>(region);
  const int64_t clock = now_ + lease_server_off_;
  if (clock_is_behind(lease_server_.fleet, clock)) return;
  if (!forgetful_) {
    if (std::abs(lease_server_off_) > skew_ms_ / 2) return;
    int64_t latest = 0;
    for (const Grant& grant : grants_) {
      if (grant.region != number) continue;
      if (lives(grant.incarnation)) return;
      latest = std::max(latest, furthest_[grant.incarnation]);
    }
    if (latest > clock + skew_ms_) return;
  }
  const int64_t until = lease_server_.regions[region].until_ms;
  int64_t ahead = lead_ms_ + reserve_ms_;
  if (!rules_.dead_by_reserve) ahead = -lease_server_.fleet.skew_ms;
  confirm_dead(lease_server_.fleet, lease_server_.regions[region], clock, ahead);
  if (lease_server_.regions[region].until_ms < until) happened("dead");
}

void World::recover() {
  if (!lease_server_moved_ && !lease_server_replaced_ && !lease_server_.fleet.halted) return;
  if (rules_.old_is_stopped) old_.reset();
  if ((nothing_lost_ && lease_server_moved_ && !lease_server_.fleet.halted) ||
      (forgetful_ && random_.percent(50))) {
    confirm_no_data_loss(lease_server_.fleet, ++now_, draw());
    happened("nothing lost");
  } else {
    // The time that the operator passes to confirm_data_loss() is at most max_skew too late.
    const auto behind = static_cast<int64_t>(random_.below(static_cast<uint64_t>(skew_ms_) + 1));
    confirm_data_loss(lease_server_.fleet, lease_server_.regions, ++now_ - behind, draw(),
                      lease_server_moved_);
    if (!rules_.adopt_while_leased) lease_server_.fleet.adopt_ms = 1;
  }
  lease_server_moved_ = lease_server_replaced_ = nothing_lost_ = false;
}

}  // namespace snowflake
