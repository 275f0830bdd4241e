#include "weir/ask/grpc_services.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace weir::ask {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// Field numbers, named by message and field: kFileName is `name` of a FileDescriptorProto.
using Tag = protozero::pbf_tag_type;
constexpr Tag kCheckService = 1, kCheckStatus = 1;
constexpr Tag kSetFile = 1;
constexpr Tag kFileName = 1, kFilePackage = 2, kFileDependency = 3, kFileMessage = 4, kFileEnum = 5,
              kFileService = 6;
constexpr Tag kMessageName = 1, kMessageNested = 3, kMessageEnum = 4;
constexpr Tag kServiceName = 1, kServiceMethod = 2;
constexpr Tag kAnyName = 1;  // the name of an enum or of a method
constexpr Tag kAskFile = 3, kAskSymbol = 4, kAskServices = 7;
constexpr Tag kAnswerRequest = 2, kAnswerFiles = 4, kAnswerServices = 6, kAnswerError = 7;
constexpr Tag kFilesFile = 1, kServicesService = 1, kServiceEntryName = 1;
constexpr Tag kErrorCode = 1, kErrorMessage = 2;

constexpr std::int32_t kNotFound = 5, kUnimplemented = 12;  // statuses of gRPC

pbf_reader message_in(std::string_view text) {
  return {text.data(), text.size()};
}

// Calls visit(tag, text) for each field of the message that is a text or a message, and skips the others.
template <class Visit>
void for_each_text(std::string_view message, Visit visit) {
  auto reader = message_in(message);
  while (reader.next()) {
    if (reader.wire_type() != pbf_wire_type::length_delimited) {
      reader.skip();
      continue;
    }
    const auto tag = reader.tag();
    const auto view = reader.get_view();
    visit(tag, std::string_view(view.data(), view.size()));
  }
}

// Returns the last field of this number; empty if there is none.
std::string_view text_in(std::string_view message, Tag wanted) {
  std::string_view found;
  for_each_text(message, [&](Tag tag, std::string_view text) {
    if (tag == wanted) found = text;
  });
  return found;
}

std::string full_name(std::string_view scope, std::string_view name) {
  std::string full(scope);
  if (!full.empty()) full += '.';
  return full.append(name);
}

void append_error(std::string& out, std::int32_t code, std::string_view what) {
  pbf_writer writer(out);
  pbf_writer error(writer, kAnswerError);
  error.add_int32(kErrorCode, code);
  error.add_string(kErrorMessage, what.data(), what.size());
}

}  // namespace

std::optional<std::string_view> health_service(std::string_view message) {
  try {
    return text_in(message, kCheckService);
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

void append_health(std::string& out, GrpcHealth health) {
  pbf_writer(out).add_enum(kCheckStatus, static_cast<std::int32_t>(health));
}

ProtoFiles::ProtoFiles(std::string_view descriptors) {
  for_each_text(descriptors, [&](Tag tag, std::string_view text) {
    if (tag == kSetFile) add_file(text);
  });
}

void ProtoFiles::add_file(std::string_view text) {
  const auto file = files_.size();
  files_.push_back({.text = text, .imports = {}});
  by_name_.emplace(text_in(text, kFileName), file);
  const auto package = text_in(text, kFilePackage);
  for_each_text(text, [&](Tag tag, std::string_view part) {
    if (tag == kFileDependency) files_[file].imports.push_back(by_name_.at(std::string(part)));
    if (tag == kFileMessage) add_message(package, part, file);
    if (tag == kFileEnum) by_symbol_.emplace(full_name(package, text_in(part, kAnyName)), file);
    if (tag == kFileService) add_service(package, part, file);
  });
}

void ProtoFiles::add_message(std::string_view scope, std::string_view text, std::size_t file) {
  const auto name = full_name(scope, text_in(text, kMessageName));
  by_symbol_.emplace(name, file);
  for_each_text(text, [&](Tag tag, std::string_view part) {
    if (tag == kMessageNested) add_message(name, part, file);
    if (tag == kMessageEnum) by_symbol_.emplace(full_name(name, text_in(part, kAnyName)), file);
  });
}

void ProtoFiles::add_service(std::string_view scope, std::string_view text, std::size_t file) {
  const auto name = full_name(scope, text_in(text, kServiceName));
  by_symbol_.emplace(name, file);
  services_.push_back(name);
  for_each_text(text, [&](Tag tag, std::string_view part) {
    if (tag == kServiceMethod) by_symbol_.emplace(full_name(name, text_in(part, kAnyName)), file);
  });
}

// Appends the file that `index` has for `name`, and all its direct and indirect imports.
void ProtoFiles::append_files(std::string& out, const std::map<std::string, std::size_t, std::less<>>& index,
                              std::string_view name) const {
  const auto found = index.find(name);
  if (found == index.end()) return append_error(out, kNotFound, "weir has no such file or symbol");
  std::vector<std::size_t> needed{found->second};
  for (std::size_t i = 0; i < needed.size(); ++i)
    for (const auto import : files_[needed[i]].imports)
      if (std::find(needed.begin(), needed.end(), import) == needed.end()) needed.push_back(import);
  pbf_writer writer(out);
  pbf_writer answer(writer, kAnswerFiles);
  for (const auto file : needed)
    answer.add_bytes(kFilesFile, files_[file].text.data(), files_[file].text.size());
}

std::optional<std::string> ProtoFiles::answer(std::string_view request) const {
  std::string out;
  try {
    pbf_writer(out).add_message(kAnswerRequest, request.data(), request.size());
    Tag kind = 0;
    std::string_view name;
    for_each_text(request, [&](Tag tag, std::string_view text) {
      if (tag >= kAskFile && tag <= kAskServices) std::tie(kind, name) = std::pair(tag, text);
    });
    if (kind == kAskServices) {
      pbf_writer writer(out);
      pbf_writer list(writer, kAnswerServices);
      for (const auto& service : services_)
        pbf_writer(list, kServicesService).add_string(kServiceEntryName, service);
    } else if (kind == kAskFile || kind == kAskSymbol) {
      append_files(out, kind == kAskFile ? by_name_ : by_symbol_, name);
    } else {
      append_error(out, kUnimplemented, "weir's messages have no extensions");
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  return out;
}

const ProtoFiles& proto_files() {
  static constexpr char kDescriptors[] =
#include "ask/descriptors.inc"
      ;
  static const ProtoFiles files(std::string_view(kDescriptors, sizeof kDescriptors - 1));
  return files;
}

}  // namespace weir::ask
