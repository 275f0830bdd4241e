#include "weir/fetch/fetch.hpp"

#include "weir/base/version.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <memory>
#include <new>
#include <optional>

#include <curl/curl.h>

namespace weir::fetch {

namespace {

using Handle = std::unique_ptr<CURL, decltype([](CURL* handle) { curl_easy_cleanup(handle); })>;
using Multi = std::unique_ptr<CURLM, decltype([](CURLM* multi) { curl_multi_cleanup(multi); })>;
using Lines = std::unique_ptr<curl_slist, decltype([](curl_slist* lines) { curl_slist_free_all(lines); })>;
using Url = std::unique_ptr<CURLU, decltype([](CURLU* url) { curl_url_cleanup(url); })>;

// Adds the handle of a transfer to a set of transfers, as long as this object lives.
class Joined {
 public:
  Joined(CURLM* multi, CURL* handle) : multi_(multi), handle_(handle) {
    curl_multi_add_handle(multi, handle);
  }
  ~Joined() { curl_multi_remove_handle(multi_, handle_); }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

 private:
  CURLM* const multi_;
  CURL* const handle_;
};

bool same_letters(std::string_view one, std::string_view other) noexcept {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The part of the answer that has arrived so far.
struct Arriving {
  const std::size_t most;
  Response response{};
  std::size_t field_bytes = 0;
  bool too_large = false;

  // Records that the answer is too large. Returns 0, because libcurl ends the transfer if a callback returns
  // another number than `size`. No exception may pass through libcurl.
  std::size_t reject() noexcept {
    too_large = true;
    return 0;
  }
};

std::size_t take_body(char* bytes, std::size_t, std::size_t size, void* user) noexcept try {
  auto& arriving = *static_cast<Arriving*>(user);
  auto& body = arriving.response.body;
  if (size > arriving.most - body.size()) return arriving.reject();
  body.append(bytes, size);
  return size;
} catch (const std::bad_alloc&) {
  return 0;
}

// Takes one line of the answer's head. A status line begins a new head, because 1xx answers may come before
// the final answer.
std::size_t take_line(char* bytes, std::size_t, std::size_t size, void* user) noexcept try {
  auto& arriving = *static_cast<Arriving*>(user);
  if (size > arriving.most - arriving.field_bytes) return arriving.reject();
  arriving.field_bytes += size;
  const std::string_view line(bytes, size);
  if (line.starts_with("HTTP/")) arriving.response.fields.clear();
  const auto colon = line.find(':');
  if (colon != std::string_view::npos && !line.starts_with("HTTP/"))
    arriving.response.fields.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  return size;
} catch (const std::bad_alloc&) {
  return 0;
}

template <class Value>
void set(CURL* handle, CURLoption option, Value value, bool& good) {
  good = good && curl_easy_setopt(handle, option, value) == CURLE_OK;
}

// Sets the bounds of the exchange, and turns off the features of libcurl that weir does not want.
bool set_bounds(CURL* handle, const Request& request) {
  bool good = true;
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(request.timeout);
  set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()), good);
  set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout.count()), good);
  set(handle, CURLOPT_PROTOCOLS_STR, request.allow_http ? "http,https" : "https", good);
  set(handle, CURLOPT_FOLLOWLOCATION, 0L, good);
  set(handle, CURLOPT_PROXY, "", good);
  set(handle, CURLOPT_NOSIGNAL, 1L, good);
  set(handle, CURLOPT_QUICK_EXIT, 1L, good);  // without this, libcurl would wait for a silent name server
  set(handle, CURLOPT_SSL_VERIFYPEER, 1L, good);
  set(handle, CURLOPT_SSL_VERIFYHOST, 2L, good);
  set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2), good);
  if (!request.ca_file.empty()) {
    set(handle, CURLOPT_CAINFO, request.ca_file.c_str(), good);
    set(handle, CURLOPT_CAPATH, static_cast<const char*>(nullptr), good);
  }
  return good;
}

bool set_message(CURL* handle, const Request& request, curl_slist* lines, Arriving& arriving) {
  bool good = true;
  set(handle, CURLOPT_URL, request.url.c_str(), good);
  set(handle, CURLOPT_HTTPHEADER, lines, good);
  set(handle, CURLOPT_USERAGENT, "weir/" WEIR_VERSION, good);
  if (!request.body.empty() || request.method == "POST") {
    set(handle, CURLOPT_POSTFIELDS, request.body.c_str(), good);
    set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()), good);
  }
  if (request.method == "HEAD") set(handle, CURLOPT_NOBODY, 1L, good);
  set(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str(), good);
  set(handle, CURLOPT_WRITEFUNCTION, &take_body, good);
  set(handle, CURLOPT_WRITEDATA, &arriving, good);
  set(handle, CURLOPT_HEADERFUNCTION, &take_line, good);
  set(handle, CURLOPT_HEADERDATA, &arriving, good);
  return good;
}

// Returns the request's field lines. "Expect:" without a value keeps libcurl from waiting for a 100 Continue.
Lines lines_of(const Request& request) {
  Lines lines(curl_slist_append(nullptr, "Expect:"));
  for (const auto& [name, value] : request.fields)
    if (auto* longer = curl_slist_append(lines.get(), (name + ": " + value).c_str())) {
      (void)lines.release();
      lines.reset(longer);
    }
  return lines;
}

// Runs the transfer until it ends. Returns nullopt if `stop` was requested before the end.
std::optional<CURLcode> transfer(CURL* handle, const std::stop_token& stop) {
  const Multi multi(curl_multi_init());
  if (!multi) return CURLE_OUT_OF_MEMORY;
  const Joined joined(multi.get(), handle);
  const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
  constexpr int kLongestPoll = 1000;  // in milliseconds; libcurl returns earlier if it has something to do
  for (int running = 1; running != 0;) {
    if (stop.stop_requested()) return std::nullopt;
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
    if (running != 0) (void)curl_multi_poll(multi.get(), nullptr, 0, kLongestPoll, nullptr);
  }
  int left = 0;
  const auto* message = curl_multi_info_read(multi.get(), &left);
  return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
}

std::string in_seconds(base::Duration time) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return milliseconds % 1000 == 0 ? std::to_string(milliseconds / 1000) + " s"
                                  : std::to_string(milliseconds) + " ms";
}

base::Error error_of(CURLcode code, const Request& request, const Arriving& arriving, const char* details) {
  if (arriving.too_large) return {"the answer has more than " + std::to_string(request.max_bytes) + " bytes"};
  if (code == CURLE_OPERATION_TIMEDOUT) return {"no whole answer within " + in_seconds(request.timeout)};
  const std::string_view known = *details != '\0' ? details : curl_easy_strerror(code);
  return {std::string(trimmed(known))};
}

}  // namespace

std::string_view Response::find(std::string_view name) const noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const auto& field) { return same_letters(field.first, name); });
  return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

std::string fault_in_url(const std::string& url, bool allow_http) {
  const bool plain = url.starts_with("http://");
  if (!plain && !url.starts_with("https://"))
    return std::string("expected a URL that begins with ") +
           (allow_http ? "http:// or https://" : "https://");
  if (plain && !allow_http) return "expected https://, because others can change an answer without TLS";
  const Url parsed(curl_url());
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return "expected a URL with a host, such as \"https://login.example.com/jwks.json\"";
  char* user = nullptr;
  const bool has_user = curl_url_get(parsed.get(), CURLUPART_USER, &user, 0) == CURLUE_OK;
  curl_free(user);
  return has_user ? "expected a URL without a user and a password" : "";
}

base::Result<Response> request(const Request& request, const std::stop_token& stop) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (auto fault = fault_in_url(request.url, request.allow_http); !fault.empty()) return base::Error{fault};
  const Handle handle(ready == CURLE_OK ? curl_easy_init() : nullptr);
  const auto lines = lines_of(request);
  Arriving arriving{.most = request.max_bytes};
  char details[CURL_ERROR_SIZE] = "";
  if (!handle || !set_bounds(handle.get(), request) ||
      !set_message(handle.get(), request, lines.get(), arriving) ||
      curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, details) != CURLE_OK)
    return base::Error{"libcurl cannot prepare the request"};
  const auto code = transfer(handle.get(), stop);
  if (!code) return base::Error{"weir is stopping"};
  if (*code != CURLE_OK) return error_of(*code, request, arriving, details);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  arriving.response.status = static_cast<unsigned>(status);
  return std::move(arriving.response);
}

}  // namespace weir::fetch
