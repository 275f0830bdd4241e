// Runs jobs on workers that have permits.
#include "weir/proxy/permit_owners.hpp"

#include "proxy/ask/permits.hpp"
#include "unit/proxy/lone_worker.hpp"

#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST(PermitOwners, JobThatFindsNoMemoryDoesNotEndTheLoopOfItsWorker) {
  PermitOwners owners;
  LoneWorker site{{}};
  Permits permits(site.worker, &owners);
  std::vector<Permits*> ran;
  ASSERT_TRUE(owners.post(permits.number(), [&](Permits&) { throw std::bad_alloc(); }));
  ASSERT_TRUE(owners.post(permits.number(), [&](Permits& theirs) { ran.push_back(&theirs); }));
  EXPECT_NO_THROW(site.context.poll());
  EXPECT_EQ(ran, std::vector<Permits*>{&permits});
}

TEST(PermitOwners, JobForAWorkerThatHasLeftDoesNotRun) {
  PermitOwners owners;
  LoneWorker site{{}};
  unsigned number = 0;
  {
    const Permits permits(site.worker, &owners);
    number = permits.number();
  }
  EXPECT_FALSE(owners.post(number, [](Permits&) { FAIL(); }));
  EXPECT_FALSE(owners.post(number + 1, [](Permits&) { FAIL(); }));
}

}  // namespace
}  // namespace weir::proxy
