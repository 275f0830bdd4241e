#include "weir/observe/spell.hpp"

#include <gtest/gtest.h>

namespace weir::observe {
namespace {

constexpr base::TimePoint at(std::int64_t seconds) {
  return base::TimePoint{std::chrono::seconds(seconds)};
}

TEST(SpellTest, HasNoSpellAtFirst) {
  Spell spell(std::chrono::seconds(60));
  spell.note(500, at(10));
  spell.note(500, at(15));
  EXPECT_FALSE(spell.since());
  EXPECT_FALSE(spell.last());
}

TEST(SpellTest, BeginsWithTheFirstEventAndSurvivesPauses) {
  Spell spell(std::chrono::seconds(60));
  spell.note(0, at(10));
  spell.note(3, at(15));
  EXPECT_EQ(spell.since(), at(15));
  spell.note(3, at(75));
  EXPECT_EQ(spell.since(), at(15));
  spell.note(4, at(76));
  EXPECT_EQ(spell.since(), at(15));
  EXPECT_EQ(spell.last(), at(76));
}

TEST(SpellTest, ALongerPauseEndsItAndTheNextEventBeginsANewOne) {
  Spell spell(std::chrono::seconds(60));
  spell.note(0, at(10));
  spell.note(1, at(15));
  spell.note(1, at(76));
  EXPECT_FALSE(spell.since());
  EXPECT_EQ(spell.last(), at(15));
  spell.note(2, at(80));
  EXPECT_EQ(spell.since(), at(80));
}

TEST(SpellTest, ATotalThatFellHasRestarted) {
  Spell spell(std::chrono::seconds(60));
  spell.note(100, at(10));
  spell.note(2, at(15));
  EXPECT_EQ(spell.since(), at(15));
}

}  // namespace
}  // namespace weir::observe
