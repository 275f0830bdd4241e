// Tests messages to the service manager. The test receives the messages on its own socket.
#include "server/process/notify.hpp"

#include "unit/config/configuration.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace weir::server::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

// The service manager's socket. `name`: its address, in the form of NOTIFY_SOCKET.
class Manager {
 public:
  explicit Manager(const std::string& name) : name_(name), fd_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) != 0)
      throw std::runtime_error("bind " + name);
  }
  ~Manager() { ::close(fd_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Returns the message that has arrived. Does not wait, because a datagram arrives at once.
  std::string heard() {
    char text[4096];
    const auto got = ::recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return got < 0 ? "" : std::string(text, static_cast<std::size_t>(got));
  }
  [[nodiscard]] const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  int fd_;
};

struct Faults {
  std::vector<std::string> said;
  std::function<void(const std::string&)> take() {
    return [this](const std::string& what) { said.push_back(what); };
  }
};

std::string abstract_name() {
  return "@weir-test-" + std::to_string(::getpid());
}

TEST(Notify, MessageIsSentToASocketPathOrAnAbstractSocket) {
  const config::test::Folder folder;
  for (const auto& name : {folder.file("notify"), abstract_name()}) {
    Manager manager(name);
    Faults faults;
    Notify notify({.socket = manager.name()}, faults.take());
    EXPECT_TRUE(notify.is_on());
    notify.status("waiting");
    EXPECT_EQ(manager.heard(), "STATUS=waiting");
    notify.ready("serving");
    EXPECT_EQ(manager.heard(), "READY=1\nSTATUS=serving");
    notify.reloading();
    EXPECT_THAT(manager.heard(), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=.+"));
    notify.alive();
    EXPECT_EQ(manager.heard(), "WATCHDOG=1");
    notify.stopping("ending", std::chrono::seconds(2));
    EXPECT_EQ(manager.heard(), "STOPPING=1\nSTATUS=ending\nEXTEND_TIMEOUT_USEC=2000000");
    EXPECT_THAT(faults.said, IsEmpty());
  }
}

TEST(Notify, NothingIsSentWithoutANotifySocket) {
  for (const char* socket : {static_cast<const char*>(nullptr), ""}) {
    Faults faults;
    Notify notify({.socket = socket, .watchdog_usec = "1000000"}, faults.take());
    EXPECT_FALSE(notify.is_on());
    EXPECT_EQ(notify.watchdog().count(), 0);
    notify.ready("serving");
    EXPECT_THAT(faults.said, IsEmpty());
  }
}

TEST(Notify, InvalidSocketNamesAreReported) {
  for (const auto& socket :
       {std::string("vsock:2:1"), std::string("relative"), std::string("/"), std::string(200, '/')}) {
    Faults faults;
    Notify notify({.socket = socket.c_str()}, faults.take());
    EXPECT_FALSE(notify.is_on());
    EXPECT_THAT(faults.said, ElementsAre(HasSubstr("NOTIFY_SOCKET is neither"))) << socket;
  }
}

TEST(Notify, MissingServiceManagerIsReportedOnlyOnce) {
  const config::test::Folder folder;
  const auto nowhere = folder.file("nobody");
  Faults faults;
  Notify notify({.socket = nowhere.c_str()}, faults.take());
  for (int i = 0; i < 3; ++i) notify.alive();
  EXPECT_THAT(faults.said, ElementsAre(HasSubstr("cannot send a message to the service manager: ")));
}

TEST(Notify, WatchdogSettingForAnotherProcessIsIgnored) {
  Manager manager(abstract_name());
  const auto own = std::to_string(::getpid());
  const auto watchdog = [&](const char* micros, const char* pid) {
    Faults faults;
    return Notify({manager.name(), micros, pid}, faults.take()).watchdog().count();
  };
  EXPECT_EQ(watchdog("30000000", nullptr), 30'000'000);
  EXPECT_EQ(watchdog("30000000", own.c_str()), 30'000'000);
  EXPECT_EQ(watchdog("30000000", "1"), 0);
  EXPECT_EQ(watchdog(nullptr, nullptr), 0);
}

TEST(Notify, WatchdogIntervalThatIsNotANumberIsIgnored) {
  Manager manager(abstract_name());
  for (const char* micros : {"", "0", "-1", "30s"}) {
    Faults faults;
    Notify notify({manager.name(), micros, nullptr}, faults.take());
    EXPECT_TRUE(notify.is_on());
    EXPECT_EQ(notify.watchdog().count(), 0);
    EXPECT_THAT(faults.said, ElementsAre(HasSubstr("WATCHDOG_USEC")));
  }
}

}  // namespace
}  // namespace weir::server::test
