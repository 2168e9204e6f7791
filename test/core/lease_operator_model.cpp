// What people do to the fleet of the model: operators, and one who has a server's credentials.
#include "lease_world.hpp"

namespace snowflake {

namespace {
constexpr int32_t kLiar = 99;
}  // namespace

// A server's credentials in the wrong hands: it claims to have heard more, or to hold a region.
void World::lie() {
  LeaseRequest request{};
  request.call = random_.percent(50) ? LeaseCall::renew : LeaseCall::acquire;
  request.server = kLiar;
  request.incarnation = draw();
  request.term = control_.fleet.term + static_cast<int64_t>(random_.below(3)) - 1;
  request.newest = control_.fleet.newest + static_cast<int64_t>(random_.below(3));
  request.proven = !rules_.proofs_checked;
  request.titled = !rules_.adopt_signed_only;
  request.nonce = draw();
  request.clock_ms = now_ + control_off_;
  request.length_ms = 1;
  request.region = static_cast<int32_t>(random_.below(control_.regions.size()));
  request.floor_ms = request.until_ms =
      request.clock_ms + static_cast<int64_t>(random_.below(static_cast<uint64_t>(lease_ms_)));
  const bool behind = control_moved_ || control_replaced_ || control_.fleet.halted || old_;
  const LeaseAnswer answer = decide(control_.fleet, control_.regions, request, request.clock_ms);
  if (answer.status == AnswerStatus::unproven) happened("unproven");
  if (answer.status == AnswerStatus::halted && !behind) violate("halted by a lie");
  if (answer.status == AnswerStatus::granted && request.call == LeaseCall::renew)
    violate("a liar goes on with a lease that nobody had");
}

void World::operate() {
  const size_t region = random_.below(control_.regions.size());
  switch (random_.below(5)) {
    case 0:
    case 1:
      evict(control_.regions[region]);
      happened("evicted");
      break;
    case 2:
      if (tame_) declare_dead(region);
      break;
    default:
      recover();
  }
}

// Who was granted another region may give it back, and then hear of this one.
bool World::lives(int64_t incarnation) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const Server& s) {
    return s.up && s.memory.view().incarnation == incarnation;
  });
}

// By an operator who knows that nobody mints in the region, and that no clock was far ahead.
void World::declare_dead(size_t region) {
  if (control_moved_ || control_replaced_ || control_.fleet.halted) return;
  const auto number = static_cast<int32_t>(region);
  int64_t latest = 0;
  for (const Grant& grant : grants_) {
    if (grant.region != number) continue;
    if (lives(grant.incarnation)) return;
    latest = std::max(latest, furthest_[grant.incarnation]);
  }
  const int64_t clock = now_ + control_off_;
  if (latest > clock + skew_ms_) return;
  const int64_t until = control_.regions[region].until_ms;
  FleetState fleet = control_.fleet;
  int64_t ahead = 0;
  if (ahead_forgotten(fleet, control_.regions[region])) ahead = lead_ms_ + reserve_ms_;
  if (!rules_.dead_by_reserve) fleet.ahead_ms = ahead = -fleet.skew_ms;
  end_dead(fleet, control_.regions[region], clock, ahead);
  if (control_.regions[region].until_ms < until) happened("dead");
}

void World::recover() {
  if (!control_moved_ && !control_replaced_ && !control_.fleet.halted) return;
  if (rules_.old_is_stopped) old_.reset();
  if (nothing_lost_ && control_moved_ && !control_.fleet.halted) {
    snowflake::nothing_lost(control_.fleet, ++now_, draw());
    happened("nothing lost");
  } else {
    // The operator may be behind by what clocks may be apart.
    const auto behind = static_cast<int64_t>(random_.below(static_cast<uint64_t>(skew_ms_) + 1));
    recovered(control_.fleet, control_.regions, ++now_ - behind, draw(), control_moved_);
    if (!rules_.adopt_while_leased) control_.fleet.adopt_ms = 1;
  }
  control_moved_ = control_replaced_ = nothing_lost_ = false;
}

}  // namespace snowflake
