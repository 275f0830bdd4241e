#include "unit/redis/connection/server.hpp"

#include "redis/connection/command.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::redis {

Connection::Connection(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}
Connection::~Connection() {
  close(fd_);
}

Reply Connection::ask(const std::vector<std::string>& words) {
  std::string out;
  append_head(out, words.size());
  for (const auto& word : words) append_bulk(out, word);
  return exchange(out, 1).front();
}

std::vector<Reply> Connection::exchange(std::string_view commands, std::size_t replies) {
  if (write(fd_, commands.data(), commands.size()) != static_cast<ssize_t>(commands.size()))
    throw std::runtime_error("write");
  std::vector<Reply> answers;
  char input[65536];
  while (answers.size() < replies) {
    if (reader_.next() == ReplyReader::Next::Ready) {
      answers.push_back(reader_.reply());
      continue;
    }
    const auto n = read(fd_, input, sizeof input);
    if (n <= 0) throw std::runtime_error("redis-server hung up");
    reader_.feed({input, static_cast<std::size_t>(n)});
  }
  return answers;
}

Server::Server(std::vector<std::string> options) : options_(std::move(options)) {
  char pattern[] = "/tmp/weir-redis-XXXXXX";
  folder_ = mkdtemp(pattern);
  path_ = folder_ + "/socket";
  try {
    start();
  } catch (...) {
    kill();
    std::filesystem::remove_all(folder_);
    throw;
  }
}

Server::~Server() {
  kill();
  std::filesystem::remove_all(folder_);
}

void Server::start() {
  std::vector<std::string> words = {"redis-server",  "--port", "0",     "--unixsocket", path_,
                                    "--save",        "",       "--dir", folder_,        "--logfile",
                                    folder_ + "/log"};
  words.insert(words.end(), options_.begin(), options_.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::filesystem::remove(path_);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // if a test crashes, the kernel kills its server
    execvp(argv[0], argv.data());
    _exit(127);
  }
  for (int i = 0; i < 2000; ++i) {
    if (Connection(path_).connected()) return;
    if (waitpid(process_, nullptr, WNOHANG) == process_) {
      process_ = -1;
      break;
    }
    usleep(5000);  // no event shows when the server, another process, is ready
  }
  std::ifstream log(folder_ + "/log");
  throw std::runtime_error("redis-server does not start: " +
                           std::string(std::istreambuf_iterator<char>(log), {}));
}

void Server::kill() {
  if (process_ <= 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void Server::freeze() {
  ::kill(process_, SIGSTOP);
  waitpid(process_, nullptr, WUNTRACED);
}

void Server::thaw() {
  ::kill(process_, SIGCONT);
}

Reply Server::ask(const std::vector<std::string>& words) const {
  return Connection(path_).ask(words);
}

std::string Server::info(const std::string& section, const std::string& name) const {
  const auto text = "\r\n" + ask({"INFO", section}).text;
  const auto at = text.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const auto from = at + 2 + name.size() + 1;
  return text.substr(from, text.find('\r', from) - from);
}

unsigned short free_port() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int ephemeral = 32'768;
  range >> ephemeral;
  constexpr int kFirst = 10'000;
  std::random_device random;
  for (;;) {
    std::uniform_int_distribution<int> below(kFirst, std::max(kFirst + 1, ephemeral) - 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<unsigned short>(below(random)));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    if (free) return ntohs(address.sin_port);
  }
}

std::unique_ptr<Server> start_on_ports(const std::function<std::vector<std::string>()>& options) {
  for (int tries = 0; tries < 20; ++tries) try {
      return std::make_unique<Server>(options());
    } catch (const std::runtime_error& e) {
      if (std::string_view(e.what()).find("Address already in use") == std::string_view::npos) throw;
    }
  throw std::runtime_error("redis-server finds no free ports");
}

}  // namespace weir::redis
