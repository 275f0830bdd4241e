// The query parameters or cookies of a request, by name. weir parses them once for each request. So a second
// rule that reads parameters costs very little.
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

// Bounds on parameters and cookies: [server] max_parameters and max_repeats.
struct ParameterBounds {
  // the largest number of query parameters; also of cookies, and of form fields
  std::size_t parameters = 1000;
  std::size_t repeats = 16;  // the largest number of values of one name, for names that rules read
};

// The bound that a request exceeds, if any.
struct Excess {
  enum class Kind : std::uint8_t { None, Parameters, Cookies, Fields, Repeats };
  Kind kind = Kind::None;
  std::string_view place;  // for Repeats: "header", "query parameter" or "cookie"; static text
  std::string_view name;   // for Repeats: the name that a rule reads

  explicit operator bool() const noexcept { return kind != Kind::None; }
};

struct Parameter {
  std::string_view name;     // decoded, if this is a query parameter
  std::string_view value;    // as received
  std::string_view decoded;  // query: decoded, '+' stays; cookie: as received
  std::string_view spaced;   // query: decoded, '+' is a blank; cookie: as received
  std::uint32_t order = 0;   // position in the request
};

// All values that a request has under one name, in the order of the request.
struct NamedValues {
  std::span<const Parameter> values;
  bool complete = true;  // false: the request exceeds a bound, so some values are missing
};

class Parameters {
 public:
  Parameters() = default;
  // The copy is empty. It parses the request again when it is used.
  Parameters(const Parameters&) noexcept {}
  Parameters& operator=(const Parameters& other) noexcept {
    if (this != &other) clear();
    return *this;
  }

  // Removes all parameters, but keeps up to a few KiB of memory for reuse.
  void clear() noexcept;

  // Parses `query` ("a=1&b=2") unless the last call parsed the same query. `most`: the largest number of
  // parameters; see too_many(). Some servers read '+' in a name as a blank, other servers as '+'. So a
  // parameter with '+' in its name is stored under both names.
  void read_query(std::string_view query, std::size_t most);
  // Parse Cookie fields ("a=1; b=2"): begin_cookies(), then add_cookies() for each field, then end_cookies().
  void begin_cookies() noexcept;
  void add_cookies(std::string_view field, std::size_t most);
  void end_cookies();

  [[nodiscard]] bool is_read() const noexcept { return read_; }
  // Returns true if the request has more than `most` parameters. In that case no parameter is stored.
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }
  // Returns the values of `name`, which is case-sensitive.
  [[nodiscard]] std::span<const Parameter> named(std::string_view name) const noexcept;

 private:
  [[nodiscard]] std::string_view decode(std::string_view raw, bool blanks);
  void add_parameter(std::string_view piece);
  void sort();

  std::vector<Parameter> parameters_;  // sorted by name, then by `order`
  std::string decoded_;                // the decoded text to which views point; does not grow while parsing
  std::string_view source_;            // the query that was parsed last
  bool read_ = false;
  bool too_many_ = false;
};

}  // namespace weir::http
