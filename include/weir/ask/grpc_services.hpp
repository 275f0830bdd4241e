// The messages of two services that gRPC tools expect from every server: the health check (grpc.health.v1)
// and reflection (grpc.reflection.v1 and v1alpha). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::ask {

// Values of HealthCheckResponse.status.
enum class GrpcHealth : std::uint8_t { Serving = 1, NotServing = 2 };

// Returns the name of the service in a HealthCheckRequest; empty: the whole server. Returns nullopt if the
// message is malformed. The result is a view into the message.
[[nodiscard]] std::optional<std::string_view> health_service(std::string_view message);
// Appends a HealthCheckResponse.
void append_health(std::string& out, GrpcHealth health);

// The files that describe services and their messages, for reflection. Immutable.
class ProtoFiles {
 public:
  // `descriptors`: a serialized google.protobuf.FileDescriptorSet, which must outlive this object. REQUIRES:
  // each file follows the files that it imports, as protoc writes them.
  explicit ProtoFiles(std::string_view descriptors);

  // Returns the answer to a ServerReflectionRequest. Returns nullopt if the message is malformed.
  [[nodiscard]] std::optional<std::string> answer(std::string_view request) const;

  // Returns the full names of all services.
  [[nodiscard]] const std::vector<std::string>& services() const noexcept { return services_; }

 private:
  struct File {
    std::string_view text;  // a serialized FileDescriptorProto
    std::vector<std::size_t> imports;
  };
  void add_file(std::string_view text);
  void add_message(std::string_view scope, std::string_view text, std::size_t file);
  void add_service(std::string_view scope, std::string_view text, std::size_t file);
  void append_files(std::string& out, const std::map<std::string, std::size_t, std::less<>>& index,
                    std::string_view name) const;

  std::vector<File> files_;
  std::map<std::string, std::size_t, std::less<>> by_name_;    // for each file name: the file's index
  std::map<std::string, std::size_t, std::less<>> by_symbol_;  // for each full name: the index of its file
  std::vector<std::string> services_;
};

// Returns the files of the services that weir offers to gRPC clients.
[[nodiscard]] const ProtoFiles& proto_files();

}  // namespace weir::ask
