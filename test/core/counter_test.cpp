#include "core/counter.hpp"

#include <gtest/gtest.h>

namespace snowflake {
namespace {

TEST(CounterTest, IsUsedByListAndFlagsAndCost) {
  constexpr auto x86 = Processor::x86;
  constexpr auto arm = Processor::arm;
  EXPECT_EQ(judge_counter("tsc", false, 10, x86), CounterUse::used);
  for (const char* source : {"kvm-clock", "hyperv_clocksource_tsc_page", "xen"}) {
    EXPECT_EQ(judge_counter(source, true, 10, x86), CounterUse::used) << source;
    EXPECT_EQ(judge_counter(source, false, 10, x86), CounterUse::not_constant) << source;
    EXPECT_EQ(judge_counter(source, true, kMostCounterNs + 1, x86), CounterUse::slow) << source;
    EXPECT_EQ(judge_counter(source, true, 10, arm), CounterUse::unknown_source) << source;
  }
  EXPECT_EQ(judge_counter("tsc", true, INT64_MAX, x86), CounterUse::slow);
  EXPECT_EQ(judge_counter("tsc", true, 10, arm), CounterUse::unknown_source);
  EXPECT_EQ(judge_counter("arch_sys_counter", false, 10, arm), CounterUse::used);
  for (const char* source :
       {"", "hpet", "acpi_pm", "tsc-early", "jiffies", "arch_sys_counter", "tsc ", "kvm"})
    EXPECT_EQ(judge_counter(source, true, 10, x86), CounterUse::unknown_source) << source;
  EXPECT_EQ(judge_counter("tsc", true, 10, Processor::other), CounterUse::unknown_source);
}

TEST(CounterTest, IsConstantByBothFlags) {
  EXPECT_TRUE(has_constant_counter("fpu tsc constant_tsc rep_good nonstop_tsc cpuid"));
  EXPECT_TRUE(has_constant_counter("nonstop_tsc constant_tsc"));
  for (const char* flags : {"", "constant_tsc", "nonstop_tsc tsc", "constant_tsc nonstop_tsc_s3",
                            "unconstant_tsc nonstop_tsc", "constant_tscnonstop_tsc"})
    EXPECT_FALSE(has_constant_counter(flags)) << flags;
}

}  // namespace
}  // namespace snowflake
