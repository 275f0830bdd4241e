// Reads the public sets http2-frame-test-case and hpack-test-case, and reads and writes HTTP/2 frames.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

namespace weir::http {

struct Http2Frame {
  static constexpr std::uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPushPromise = 5,
                                kPing = 6, kGoaway = 7, kContinuation = 9;
  static constexpr std::uint8_t kEndHeaders = 4;
  static constexpr std::size_t kHead = 9;  // octets before the content

  std::uint8_t kind = 0, flags = 0;
  std::int32_t stream = 0;
  std::string content;
  bool operator==(const Http2Frame&) const = default;

  // Returns the error of a GOAWAY or RST_STREAM. Returns nullopt for other frames, and for a GOAWAY without
  // an error.
  [[nodiscard]] std::optional<unsigned> error() const {
    if (kind != kGoaway && kind != kReset) return std::nullopt;
    const auto code = number(std::string_view(content).substr(kind == kGoaway ? 4 : 0, 4));
    return code != 0 ? std::optional(code) : std::nullopt;
  }
  [[nodiscard]] static std::uint8_t kind_of(std::string_view octets) {
    return static_cast<std::uint8_t>(octets.at(3));
  }
  [[nodiscard]] static bool concerns_connection(std::string_view octets) {
    return number(octets.substr(5, 4)) == 0;
  }
  static void set_stream(std::string& octets, std::int32_t id) {
    for (int i = 0; i < 4; ++i) octets.at(5 + i) = static_cast<char>(id >> (24 - 8 * i) & 0xff);
  }
  [[nodiscard]] static unsigned number(std::string_view octets) {
    unsigned value = 0;
    for (const char c : octets) value = value << 8 | static_cast<std::uint8_t>(c);
    return value;
  }
};

inline std::string frame_of(std::uint8_t kind, std::uint8_t flags, std::int32_t stream,
                            std::string_view content) {
  std::string octets;
  for (const int shift : {16, 8, 0}) octets += static_cast<char>(content.size() >> shift & 0xff);
  octets += static_cast<char>(kind);
  octets += static_cast<char>(flags);
  octets.append(4, '\0').append(content);
  Http2Frame::set_stream(octets, stream);
  return octets;
}

// Returns the frames in `octets`, which must contain whole frames.
inline std::vector<Http2Frame> frames_of(std::string_view octets) {
  std::vector<Http2Frame> frames;
  while (octets.size() >= Http2Frame::kHead) {
    const auto size = Http2Frame::number(octets.substr(0, 3));
    frames.push_back({Http2Frame::kind_of(octets), static_cast<std::uint8_t>(octets[4]),
                      static_cast<std::int32_t>(Http2Frame::number(octets.substr(5, 4))),
                      std::string(octets.substr(Http2Frame::kHead, size))});
    octets.remove_prefix(std::min(octets.size(), Http2Frame::kHead + size));
  }
  return frames;
}

// One head of a story. A story is a test case of the set hpack-test-case.
struct Http2Case {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  Fields fields;
  std::string wire;  // the encoded fields
};
// A story: heads that share one HPACK table. All are requests, or all are answers.
struct Http2Story {
  std::string name;
  bool is_answers = false;
  std::int64_t table_size = 0;  // the largest HPACK table that the receiver has announced; 0: the default
  std::vector<Http2Case> cases{};
};
struct Http2FrameCase {
  std::string name, wire;
  std::vector<unsigned> errors;  // the errors that a receiver may report; empty: the frame is good
  std::string data;              // the content of a DATA frame
};

inline std::string from_hex(std::string_view digits) {
  std::string octets;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    octets += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return octets;
}

inline Http2FrameCase frame_case_of(const boost::json::object& object) {
  Http2FrameCase made{{}, from_hex(object.at("wire").as_string()), {}, {}};
  if (const auto* const errors = object.at("error").if_array())
    for (const auto& error : *errors) made.errors.push_back(static_cast<unsigned>(error.as_int64()));
  if (const auto* const frame = object.at("frame").if_object())
    if (const auto* const data = frame->at("frame_payload").as_object().if_contains("data"))
      made.data = std::string(data->as_string());
  return made;
}

// Reads a story. The result has no cases if the story contains the heads only in decoded form.
inline Http2Story story_of(const boost::json::object& object) {
  Http2Story story;
  for (const auto& each : object.at("cases").as_array()) {
    const auto* const wire = each.as_object().if_contains("wire");
    if (wire == nullptr) continue;
    if (const auto* const size = each.as_object().if_contains("header_table_size");
        size != nullptr && size->is_int64())
      story.table_size = std::max(story.table_size, size->get_int64());
    Http2Case made{{}, from_hex(wire->as_string())};
    for (const auto& field : each.at("headers").as_array())
      for (const auto& [key, value] : field.as_object()) made.fields.emplace_back(key, value.as_string());
    for (const auto& field : made.fields) story.is_answers = story.is_answers || field.first == ":status";
    story.cases.push_back(std::move(made));
  }
  return story;
}

// Calls `use` with the name and the content of each JSON file of a set. `folder` contains the set's folder,
// which has the name of the set. Throws an exception if a file is not valid JSON.
template <class Use>
void for_each_case(const std::filesystem::path& folder, std::string_view set, Use use) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const auto& path = entry.path();
    if (path.extension() != ".json" || std::find(path.begin(), path.end(), set) == path.end()) continue;
    std::ifstream file(path);
    const auto value = boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    use((path.parent_path().filename() / path.filename()).string(), value.as_object());
  }
}

inline std::vector<Http2FrameCase> read_frame_cases(const std::filesystem::path& folder) {
  std::vector<Http2FrameCase> found;
  for_each_case(folder, "http2-frame-test-case", [&found](const std::string& name, const auto& object) {
    found.push_back(frame_case_of(object));
    found.back().name = name;
  });
  return found;
}

inline std::vector<Http2Story> read_stories(const std::filesystem::path& folder) {
  std::vector<Http2Story> found;
  for_each_case(folder, "hpack-test-case", [&found](const std::string& name, const auto& object) {
    auto story = story_of(object);
    story.name = name;
    if (!story.cases.empty()) found.push_back(std::move(story));
  });
  return found;
}

}  // namespace weir::http
