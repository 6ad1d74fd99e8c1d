"""What a CMakeLists.txt says of a program, in nvcc's words."""

import time

from grader.programs.cmakelists import read_cmakelists

SAMPLE = """
cmake_minimum_required(VERSION 3.20)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_SOURCE_DIR}/../../../cmake/Modules")
project(twoFiles LANGUAGES C CXX CUDA)
find_package(CUDAToolkit REQUIRED)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # not add_executable(comment a.cu)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_ARCHITECTURES 75 80)
if(ENABLE_CUDA_DEBUG)
    set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -DFAST -O1")
endif()
include_directories(inc ${CMAKE_CURRENT_SOURCE_DIR}/lib)
set(KERNELS kernel.cu more.cu)
add_executable(other other.cu)
add_executable(twoFiles main.cpp ${KERNELS})
target_compile_options(twoFiles PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda;-lineinfo>)
target_compile_definitions(twoFiles PUBLIC TILE=16)
target_link_libraries(twoFiles PRIVATE OpenMP::OpenMP_CXX)
set_target_properties(twoFiles PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_compile_definitions(other PUBLIC OTHER)
"""


def test_the_program_with_the_wanted_source_is_read_with_what_belongs_to_it() -> None:
    assert read_cmakelists(SAMPLE, "more.cu") == [
        *("-std=c++17", "-DFAST", "-O1", "-Iinc", "-I./lib", "--extended-lambda", "-lineinfo", "-DTILE=16"),
        *("-Xcompiler=-fopenmp", "-rdc=true", "main.cpp", "kernel.cu", "more.cu"),
    ]


def test_else_the_first_program_is_read() -> None:
    assert read_cmakelists(SAMPLE, "hw4.cu")[-2:] == ["-DOTHER", "other.cu"]


def test_without_a_cuda_program_there_is_nothing() -> None:
    assert read_cmakelists("add_executable(a a.cpp)", "hw4.cu") == []
    assert read_cmakelists("add_executable(a ${NOWHERE})\nset(", "hw4.cu") == []


def test_values_that_double_without_end_are_cut_off() -> None:
    doubling = "set(A -DX)\n" + "set(A ${A} ${A})\n" * 1000 + "add_executable(p a.cu)\nadd_definitions(${A})"
    assert len(read_cmakelists(doubling, "a.cu")) < 2000


def test_variables_that_make_much_text_of_little_are_cut_off() -> None:
    values = f'set(s "{"$" * 8}{"{Z}" * 8}{{s}}")\nset(T "{"${s}" * 900}")\n'
    began = time.process_time()
    read_cmakelists(values + 'add_definitions("${T}")\n' * 1000 + "add_executable(p a.cu)", "a.cu")
    assert time.process_time() - began < 2
