// Sends requests of servers to the reference model of the lease server.
#pragma once

#include <gtest/gtest.h>

#include "core/lease_memory.hpp"
#include "lease_server.hpp"
#include "lease_world.hpp"
#include "support.hpp"

namespace snowflake {

inline constexpr int64_t kNow = kDefaultEpoch + 1'000'000'000;
inline constexpr int64_t kHour = 3'600'000;

inline LeaseRequest acquire(int64_t incarnation, int32_t server = 0, int64_t clock = kNow) {
  LeaseRequest request{};
  request.call = LeaseCall::acquire;
  request.server = server;
  request.incarnation = incarnation;
  request.nonce = incarnation * 1000;
  request.clock_ms = clock;
  request.length_ms = 10'100;
  request.age_ms = 2 * kHour;
  request.region = kNoRegion;
  return request;
}

inline LeaseRequest renew(const LeaseAnswer& answer, int32_t server = 0, int64_t clock = kNow) {
  LeaseRequest request = acquire(answer.incarnation, server, clock);
  request.call = LeaseCall::renew;
  request.term = answer.term;
  request.newest = answer.number;
  request.region = answer.region;
  request.floor_ms = answer.floor_ms;
  request.until_ms = answer.until_ms;
  return request;
}

inline LeaseRequest give_back(const LeaseAnswer& answer, int64_t highest, int32_t server = 0) {
  LeaseRequest request = renew(answer, server);
  request.call = LeaseCall::give_back;
  request.grant = answer.grant;
  request.highest_ms = highest;
  return request;
}

inline FleetState new_fleet() {
  FleetState fleet{};
  fleet.term = fleet.lasting = term_at(kNow, 7);
  fleet.longest_ms = kHour + 100;
  fleet.skew_ms = 10'000;
  return fleet;
}

struct Lease : testing::Test {
  FleetState fleet = new_fleet();
  std::vector<LeasedRegion> regions = std::vector<LeasedRegion>(4);

  // The function ask() returns the lease server's answer to a server that is permitted to lease any
  // region.
  LeaseAnswer ask(const LeaseRequest& request, int64_t clock = kNow) {
    std::vector<int32_t> all(regions.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
    return decide(fleet, regions, all, request, clock);
  }
  LeaseAnswer ask_for(std::vector<int32_t> named, const LeaseRequest& request,
                      int64_t clock = kNow) {
    return decide(fleet, regions, named, request, clock);
  }
};

}  // namespace snowflake
