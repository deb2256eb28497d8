// The same in C++ (loads.c says what it does): each model is loaded, executed and unloaded by a thread of its own, and a static object
// finalises AscendCL when the program ends.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"

namespace {

void check(aclError error, const std::string &call) {
    if (error != ACL_SUCCESS) {
        throw std::runtime_error(call + ": aclError " + std::to_string(error));
    }
}

struct Library {
    bool up = false;
    ~Library() {
        if (up && aclFinalize() != ACL_SUCCESS) {
            std::_Exit(3);
        }
    }
} library;

class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) {
        check(aclrtMalloc(&address_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    }
    DeviceMemory(const DeviceMemory &) = delete;
    ~DeviceMemory() {
        aclrtFree(address_);
    }
    void *address() const {
        return address_;
    }
    std::size_t bytes() const {
        return bytes_;
    }

  private:
    void *address_ = nullptr;
    std::size_t bytes_;
};

class Model {
  public:
    Model(const std::string &variant, const std::string &path) {
        if (variant.find("mem") == 0 || variant == "config-mem") {
            std::ifstream file(path, std::ios::binary);
            content_.assign(std::istreambuf_iterator<char>(file), {});
        }
        if (variant == "file-mem" || variant == "mem-mem") {
            std::size_t work, weights;
            check(aclmdlQuerySize(path.c_str(), &work, &weights), "aclmdlQuerySize");
            work_ = std::make_unique<DeviceMemory>(work);
            weights_ = std::make_unique<DeviceMemory>(weights);
        }
        check(load(variant, path), "load " + variant);
    }
    Model(const Model &) = delete;
    ~Model() {
        bundle_ ? aclmdlBundleUnload(bundle_) : aclmdlUnload(id_);
    }

    void execute(int times) const {
        auto *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
        for (int i = 0; i < times; i++) {
            check(aclmdlExecute(id_, inputs, outputs), "aclmdlExecute");
        }
        aclmdlDestroyDataset(inputs);
        aclmdlDestroyDataset(outputs);
    }

  private:
    aclError load(const std::string &variant, const std::string &path) {
        if (variant == "file") {
            return aclmdlLoadFromFile(path.c_str(), &id_);
        }
        if (variant == "file-mem") {
            return aclmdlLoadFromFileWithMem(path.c_str(), &id_, work_->address(), work_->bytes(), weights_->address(), weights_->bytes());
        }
        if (variant == "mem") {
            return aclmdlLoadFromMem(content_.data(), content_.size(), &id_);
        }
        if (variant == "mem-mem") {
            return aclmdlLoadFromMemWithMem(content_.data(), content_.size(), &id_, work_->address(), work_->bytes(), weights_->address(),
                                            weights_->bytes());
        }
        if (variant == "bundle") {
            check(aclmdlBundleLoadFromFile(path.c_str(), &bundle_), "aclmdlBundleLoadFromFile");
            return aclmdlBundleGetModelId(bundle_, 0, &id_);
        }
        return load_with_config(variant == "config-file", path);
    }

    aclError load_with_config(bool from_file, const std::string &path) {
        std::unique_ptr<aclmdlConfigHandle, decltype(&aclmdlDestroyConfigHandle)> handle(aclmdlCreateConfigHandle(),
                                                                                         aclmdlDestroyConfigHandle);
        auto set = [&](aclmdlConfigAttr attribute, auto value) {
            check(aclmdlSetConfigOpt(handle.get(), attribute, &value, sizeof value), "aclmdlSetConfigOpt");
        };
        set(ACL_MDL_LOAD_TYPE_SIZET, static_cast<std::size_t>(from_file ? ACL_MDL_LOAD_FROM_FILE : ACL_MDL_LOAD_FROM_MEM));
        if (from_file) {
            set(ACL_MDL_PATH_PTR, path.c_str());
        } else {
            set(ACL_MDL_MEM_ADDR_PTR, static_cast<void *>(content_.data()));
            set(ACL_MDL_MEM_SIZET, content_.size());
        }
        return aclmdlLoadWithConfig(handle.get(), &id_);
    }

    std::uint32_t id_ = 0, bundle_ = 0;
    std::string content_;
    std::unique_ptr<DeviceMemory> work_, weights_;
};

} // namespace

int main(int argc, char **argv) {
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &end, nullptr);
    check(aclInit(nullptr), "aclInit");
    library.up = true;
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto count = static_cast<std::ptrdiff_t>(words.size() / 4);
    std::latch executed(count), ending(1);
    std::vector<std::thread> threads;
    for (std::ptrdiff_t i = 0; i < count; i++) {
        threads.emplace_back([&, word = words.begin() + 4 * i] {
            check(aclrtSetDevice(std::stoi(word[2])), "aclrtSetDevice");
            const Model model(word[0], word[1]);
            model.execute(std::stoi(word[3]));
            executed.count_down();
            ending.wait();
        });
    }
    executed.wait();
    std::cout << "executed" << std::endl;
    int number;
    sigwait(&end, &number);
    ending.count_down();
    for (auto &thread : threads) {
        thread.join();
    }
}
