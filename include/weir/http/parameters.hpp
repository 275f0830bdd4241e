// The parameters of a request's query, or its cookies, found by name. Taken apart once for each request, so
// that many rules cost little more than one.
//
// Pure. Belongs to one request head; allocates nothing once its memory is warm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

// How much of what a request says by name is read: [server] max_parameters and max_repeats.
struct ParameterBounds {
  std::size_t parameters = 1000;  // of a query; and as many cookies
  std::size_t repeats = 16;       // values under one name that something asks for
};

// Which bound a request exceeds.
struct Excess {
  enum class Kind : std::uint8_t { None, Parameters, Cookies, Repeats };
  Kind kind = Kind::None;
  std::string_view place;  // of Repeats: "header", "query parameter" or "cookie"; static text
  std::string_view name;   // of Repeats: a view of the name that was asked for

  explicit operator bool() const noexcept { return kind != Kind::None; }
};

struct Parameter {
  std::string_view name;     // of a query: decoded
  std::string_view value;    // as it came
  std::string_view decoded;  // of a query: decoded, '+' for itself; of a cookie: as it came
  std::string_view spaced;   // likewise, '+' for a blank
  std::uint32_t order = 0;   // of its place in the request
};

// All values under one name, in the order of the request.
struct NamedValues {
  std::span<const Parameter> values;
  bool complete = true;  // false: a bound is exceeded, and `values` are some of them at most
};

class Parameters {
 public:
  Parameters() = default;
  // A copy shares nothing with the original and is read anew.
  Parameters(const Parameters&) noexcept {}
  Parameters& operator=(const Parameters& other) noexcept {
    if (this != &other) clear();
    return *this;
  }

  // Forgets what was read; keeps a moderate amount of memory.
  void clear() noexcept;

  // Reads `query` ("a=1&b=2") unless it was the last to be read. A '+' in a name stands for a blank to some
  // servers and for itself to others, so such a parameter is found under both names.
  void read_query(std::string_view query, std::size_t most);
  // Read one Cookie field ("a=1; b=2") after another: add_cookies() stands between the other two.
  void begin_cookies() noexcept;
  void add_cookies(std::string_view field, std::size_t most);
  void end_cookies();

  [[nodiscard]] bool is_read() const noexcept { return read_; }
  // There are more than `most`; then none was read.
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }
  // The values under `name`, which is compared with case.
  [[nodiscard]] std::span<const Parameter> named(std::string_view name) const noexcept;

 private:
  [[nodiscard]] std::string_view decode(std::string_view raw, bool blanks);
  void add_parameter(std::string_view piece);
  void sort();

  std::vector<Parameter> parameters_;  // by name, then by order
  std::string decoded_;                // what views of decoded text point into; never grows while it is read
  std::string_view source_;            // the query that was read
  bool read_ = false;
  bool too_many_ = false;
};

}  // namespace weir::http
