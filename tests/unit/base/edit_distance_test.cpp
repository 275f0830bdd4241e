#include "weir/base/edit_distance.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("limit", "limit"), 0U);
  EXPECT_EQ(edit_distance("limt", "limit"), 1U) << "a letter is missing";
  EXPECT_EQ(edit_distance("limiit", "limit"), 1U) << "a letter too many";
  EXPECT_EQ(edit_distance("lemit", "limit"), 1U) << "another letter";
  EXPECT_EQ(edit_distance("ilmit", "limit"), 1U) << "two neighbours swapped";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("", "key"), 3U);
  EXPECT_EQ(edit_distance("key", ""), 3U);
}

}  // namespace
}  // namespace weir::base
